const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** When something was, such as `2 h ago`. */
export function ago(ms: number): string {
  const format = new Intl.RelativeTimeFormat("en", { style: "narrow", numeric: "auto" });
  const passed = Date.now() - ms;
  const [unit, length] = UNITS.find(([, length]) => passed >= length) ?? [];
  return unit === undefined ? "now" : format.format(-Math.floor(passed / length!), unit);
}

/** How long something took, such as `340 ms`, `1.2 s` or `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}
