/** What to do about errors that are the caller's, for the author of the front end. */
const ADVICE: Readonly<Record<string, string>> = {
  unauthorized: "give `TidegateClient` a `token` that is in the settings of the server, under `[[serve.token]]`",
  not_found: "`client.sessions.list()` has the sessions of this user, and `client.sessions.create()` makes one",
};

/** An error that the server has reported, as `application/problem+json`. The message is `detail`, and what to do. */
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
    super(Object.hasOwn(ADVICE, code) ? `${detail}: ${ADVICE[code]}` : detail);
  }
}

/** The server could not be reached, its answer was cut off, or it has ended the stream of a session. */
export class ConnectionError extends Error {
  override readonly name: string = "ConnectionError";

  /**
   * @param mayHaveArrived whether the server may have received the request, and carried it out; `false`: it has not
   */
  constructor(
    message: string,
    options?: ErrorOptions,
    readonly mayHaveArrived = true,
  ) {
    super(message, options);
  }
}

/** The server has not answered a request within `timeoutMs`. It may have carried it out. */
export class TimeoutError extends ConnectionError {
  override readonly name = "TimeoutError";
}

/** An event that this version cannot read. It was left out; what it shows is missing. */
export class EventError extends Error {
  override readonly name = "EventError";

  /**
   * @param type the type of the event, where it is known
   * @param why what is wrong with it
   */
  constructor(
    readonly type: string,
    readonly why: string,
  ) {
    super(`an event \`${type}\` cannot be read, and was left out: ${why}; use the version of @tidegate/client that belongs to the server`);
  }
}
