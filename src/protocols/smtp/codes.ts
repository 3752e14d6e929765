/** SMTP's reply codes and enhanced status codes by name. */

/** Reply codes (RFC 5321 §4.2.3, RFC 4954 §6, RFC 7504) that a client decides by. */
export const CODE = {
  ready: 220,
  authenticated: 235,
  ok: 250,
  challenge: 334,
  startContent: 354,
  /** The server is about to close, whatever it answers (RFC 5321 §3.8). */
  leaving: 421,
  syntax: 500,
  badArgument: 501,
  notImplemented: 502,
  badSequence: 503,
  badParameter: 504,
  /** User, password or token are wrong (RFC 4954 §6). */
  loginRefused: 535,
  /** No mail is accepted here at all. */
  noMail: 521,
  failed: 554,
} as const

/** A reply code with the enhanced code that says more (RFC 3463, RFC 5248): how our own replies begin. */
export const STATUS = {
  ok: '250 2.0.0',
  internalError: '421 4.3.0',
  stopping: '421 4.3.2',
  timeout: '421 4.4.2',
  /** The client has done too much of something, and is disconnected. */
  enough: '421 4.7.0',
  /** The address or the domain must not be used now. */
  suspended: '450 4.7.1',
  tryLater: '451 4.3.0',
  busy: '451 4.3.2',
  tooMuch: '451 4.7.1',
  storageFull: '452 4.3.1',
  tooManyRecipients: '452 4.5.3',
  loginUnchecked: '454 4.7.0',
  unknownCommand: '500 5.5.1',
  syntax: '500 5.5.2',
  badSender: '501 5.1.7',
  badRecipient: '501 5.1.3',
  badArgument: '501 5.5.4',
  notOffered: '502 5.5.1',
  badSequence: '503 5.5.1',
  loginFailed: '535 5.7.8',
  unknownMailbox: '550 5.1.1',
  forbidden: '550 5.7.1',
  tooLarge: '552 5.3.4',
  loop: '554 5.4.6',
  badContent: '554 5.6.0',
} as const
