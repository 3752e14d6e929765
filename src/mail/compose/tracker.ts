/** Tracking as composing uses it: `sending/tracking` knows links, pixels and unsubscribing, and is handed in. */
import type { MaybePromise } from '../../base/flow/cache.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { MessageOptions } from '../record/options.ts'
import type { UnsubscribeVariable } from '../record/variables.ts'

/** What tracking needs to know of one recipient's copy. */
export interface TrackedCopy {
  accountId: string
  domain: Domain
  messageId: string
  storageKey: string
  deliveryId: string
  recipient: string
  tags: readonly string[]
  options: MessageOptions
  /** The mailing list that the copy goes through, by its own id. */
  listSid: string | null
  /** One of many copies: a default of bulk mail applies (tracking.md rule 15). */
  isBulk: boolean
  /** A text or header field of the copy contains an unsubscribe variable. */
  usesVariable: boolean
}

export interface TrackedParts {
  text: string | null
  html: string | null
  amp: string | null
}

export interface Tracking {
  /** Only header fields are added: texts and variables stay as they are. */
  textsStay: boolean
  /** The value of an unsubscribe variable. */
  variable(name: UnsubscribeVariable): string
  /**
   * The parts with footers, rewritten links and pixel; the same object if nothing changes. The same copy
   * has the same bytes every time: a retry and the archive must not differ from the first attempt. Resolves
   * once everything that the parts refer to is stored.
   * `personal`: made for this recipient, so that no other copy has the same texts.
   */
  rewrite(parts: TrackedParts, personal: boolean): Promise<TrackedParts>
  /** Fields to add when the sender gave no List-Unsubscribe. `usesVariable`: the body has an unsubscribe variable. */
  headers(usesVariable: boolean): readonly (readonly [name: string, value: string])[]
}

export interface Tracker {
  /** Null: nothing of this copy is tracked, and it has no variables. */
  trackingOf(copy: TrackedCopy): MaybePromise<Tracking | null>
}
