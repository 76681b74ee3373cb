import { TidegateError } from "@tidegate/client";

/** Returns the text of an error for the user. A server's error also has advice for authors of front ends, which is left out. */
export function messageOf(error: unknown): string {
  if (error instanceof TidegateError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
