/** An error that the server has reported, as `application/problem+json`. */
export class TidegateError extends Error {
  override readonly name = "TidegateError";

  /**
   * @param status the status of HTTP
   * @param code a stable word, such as `not_found`, `unauthorized`, `no_such_question`, `not_waiting`, `too_large` or `busy`
   * @param detail the error in one sentence
   */
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
  ) {
    super(detail);
  }
}

/** The server could not be reached, or its answer was cut off. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}
