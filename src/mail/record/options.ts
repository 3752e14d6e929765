/** The options of a message as they are stored with it. */

/** The message's own settings; null: the domain's. Stored with the message. */
export interface MessageOptions {
  dkim: boolean
  secondaryDkim: KeyName | null
  secondaryDkimPublic: KeyName | null
  testMode: boolean
  trackClicks: boolean | 'htmlonly' | null
  trackOpens: boolean | null
  pixelAtTop: boolean | null
  /** Add List-Unsubscribe; absent in messages of versions that did not know it. */
  listUnsubscribe?: boolean | null
  /** `requiretls`: so must each further server (RFC 8689). */
  requireTls: boolean | 'requiretls' | null
  skipVerification: boolean | null
  sendingIp: string | null
  sendingIpPool: string | null
  /** Name of the relay that is asked for; absent in messages of versions that did not know it. */
  relay?: string | null
  /** Unix milliseconds. */
  deliveryTime: number | null
  deliverWithinMs: number | null
  /** Send-time optimisation: the window in hours. */
  optimizeHours: number | null
  /** Time-zone optimisation: minutes after local midnight. */
  localMinute: number | null
  /** The hours in which it is sent, or `always`; null or absent, as in messages of versions that did not know it: the domain's. */
  sendWindow?: string | null
  archiveTo: string | null
  /** Lower-case names without the prefix, or all of them. */
  suppressHeaders: 'all' | readonly string[]
  /** It waits until the operator releases it; absent: it does not. */
  review?: true
  /** Only of the service's own mail, see `TlsPolicy`. */
  isTlsReport?: true
  /** The span of its acceptance; absent: the message is not traced. Never from the sender. */
  traceparent?: string
}

/** A DKIM key as callers name it: `domain/selector`. */
export interface KeyName {
  domain: string
  selector: string
  /** As it was written, for error texts. */
  given: string
}

/** Variables of one recipient, by name. */
export type RecipientVariables = Readonly<Record<string, unknown>>

/** Shared by all messages without options. */
export const DEFAULT_OPTIONS: MessageOptions = Object.freeze({
  dkim: true,
  secondaryDkim: null,
  secondaryDkimPublic: null,
  testMode: false,
  trackClicks: null,
  trackOpens: null,
  pixelAtTop: null,
  listUnsubscribe: null,
  requireTls: null,
  skipVerification: null,
  sendingIp: null,
  sendingIpPool: null,
  relay: null,
  deliveryTime: null,
  deliverWithinMs: null,
  optimizeHours: null,
  localMinute: null,
  sendWindow: null,
  archiveTo: null,
  suppressHeaders: [],
})
