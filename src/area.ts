/**
 * What an area of the service returns: one value with everything that the rest has to know of it. Each area is a folder
 * whose `area.ts` builds it from the core and from the areas it uses; `areas.ts` lists them. docs/architecture.md,
 * "Adding an area", is the recipe. Types only.
 */

import type { Operation } from './platform/http/operation.ts'
import type { Job } from './platform/jobs/job.ts'
import type { AddressReader, MailReader } from './receiving/sessions/reception.ts'
import type { Domain } from './sending/domains/domain.ts'
import type { EventInterest } from './watching/events/event.ts'
import type { EventFollower } from './watching/events/follower.ts'

export interface Area {
  /** Operations of the HTTP API. */
  operations?: readonly Operation[]
  /** Started when the service listens, stopped before any area is. */
  jobs?: readonly Job[]
  /** What it adds to the transaction of events. */
  withEvents?: EventInterest
  /** Its reader of committed events, which the retention of events waits for. */
  follower?: EventFollower
  /** Reads addresses of incoming mail that are its own. */
  addresses?: AddressReader
  /** Reads all other mail for domains of accounts. At most one area does. */
  mailReader?: MailReader
  /**
   * Removes what it holds of a deleted domain. Called in reverse order of the list: mail goes before what it was made
   * with. May be called again after a failure or a restart, also when its work was
   * done.
   * @throws NotYet when it has to wait for something that passes by itself; any error is tried again later
   */
  domainDeleted?(domain: Domain): Promise<void>
  /**
   * Removes what it holds of a closed subaccount besides its domains, which are gone by then. Otherwise as
   * `domainDeleted`. Large tables are cleared in portions (`platform/store/account-rows.ts`). After `signal` aborts the rest may
   * be left for the next call.
   */
  accountDeleted?(accountId: string, signal: AbortSignal): Promise<void>
  /** Called once the service listens. */
  start?(): Promise<void> | void
  /** Ends what it started or opened. Called in reverse order of the list, also when the start failed half-way. */
  stop?(): Promise<void> | void
}
