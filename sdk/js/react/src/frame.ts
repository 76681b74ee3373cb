/** Longer than a frame takes. A hidden page has no frames, and continues with a timer. */
const LATE_MS = 100;
/** Where there are no frames at all, such as in a terminal. */
const FRAME_MS = 16;

const due = new Set<() => void>();
let isScheduled = false;

/** Calls a function at the next frame, once however often this is called, and all functions in one task: React renders what they change together. */
export function atNextFrame(callback: () => void): void {
  due.add(callback);
  if (!isScheduled) schedule();
}

function schedule(): void {
  isScheduled = true;
  const hasFrames = typeof requestAnimationFrame === "function";
  const run = () => {
    clearTimeout(timer);
    if (frame !== undefined) cancelAnimationFrame(frame);
    isScheduled = false;
    const callbacks = [...due];
    due.clear();
    for (const callback of callbacks) attempt(callback);
  };
  const timer = setTimeout(run, hasFrames ? LATE_MS : FRAME_MS);
  const frame = hasFrames ? requestAnimationFrame(run) : undefined;
}

/** What a callback throws is reported as an uncaught error and stops none of the others. */
function attempt(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    if (typeof reportError === "function") reportError(error);
    else console.error(error);
  }
}

/** Calls a function in a task of its own, after those that wait. Timers that follow one another wait 4 ms each. */
export function inNextTask(callback: () => void): void {
  if (typeof MessageChannel === "undefined") {
    setTimeout(callback);
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(null);
}
