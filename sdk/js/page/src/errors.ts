import { TidegateError } from "@tidegate/client";

/** What a person reads of an error. What the message of a server's error says besides is for authors of front ends. */
export function messageOf(error: unknown): string {
  if (error instanceof TidegateError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
