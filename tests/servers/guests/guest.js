// Answers with the time, and puts notes in capital letters.
import { log } from "tidegate:extension/log@0.1.0";
import { nowMs } from "tidegate:extension/clock@0.1.0";

export const registration = {
  register(about) {
    log("info", `host ${about.contract}`, []);
    return {
      callbacks: [
        {
          callback: {
            tag: "on-plain-text",
            val: { unit: { tag: "line" }, streams: [], onFailure: undefined, attributes: [] },
          },
          priority: undefined,
          attributes: [],
        },
        {
          callback: { tag: "on-tag", val: { patterns: ["note"], onFailure: { tag: "withhold" }, attributes: [] } },
          priority: 80,
          attributes: [],
        },
      ],
      attributes: [],
    };
  },
};

export const onPlainText = {
  onPlainText(text, place) {
    return text.includes("TIME") ? { tag: "replace", val: text.replace("TIME", String(nowMs())) } : { tag: "pass" };
  },
};

export const onTag = {
  onTag(tag, place) {
    return { tag: "content", val: tag.content.toUpperCase() };
  },
};
