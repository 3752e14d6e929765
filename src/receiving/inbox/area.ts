/** The inbox: captured mail, the SMTP server that takes it, and the faults that it can play. */
import type { Area } from '../../area.ts'
import { createKeyedGate } from '../../base/flow/gate.ts'
import { newId } from '../../base/ids.ts'
import { TooManyWaiting } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import {
  deliveryOfReturnPath,
  deliveryToken,
  type ReturnPathMac,
  returnPathMac,
} from '../../mail/deliver/attempt/return-path.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import type { Store } from '../../platform/store/store.ts'
import { type CaptureListener, startCaptureListener } from './capture-listener.ts'
import { checkRoutes, type LinkCalls } from './check-routes.ts'
import { faultRoutes } from './fault-routes.ts'
import { createFaults } from './faults.ts'
import { checkLinks } from './html/link-check.ts'
import { createInbox, type Inbox, type MailOwner } from './inbox.ts'
import { createMailReader } from './large-mail.ts'
import { createRelease } from './release.ts'
import { type ReleaseCalls, releaseRoutes } from './release-routes.ts'
import { inboxRoutes } from './routes.ts'

interface InboxArea extends Area {
  /** Null: mail is not captured. */
  capture: CaptureListener | null
  inbox: Inbox
}

const RETENTION_EVERY_MS = 600_000

export async function inboxArea(core: Core): Promise<InboxArea> {
  const { config, store, blobs, spool, clock, random, log, sealer } = core
  const mac = returnPathMac(sealer)
  const reader = createMailReader()
  const inbox = createInbox({
    store,
    blobs,
    clock,
    headerPrefix: config.headerPrefix,
    ownerOf: (returnPath) => ownerOf(core, deliveryOfReturnPath(returnPath, mac)),
    reader,
  })
  const faults = createFaults(store, clock, random)
  const recipientOf = (returnPath: string) =>
    recipientOfDelivery(store, deliveryOfReturnPath(returnPath, mac))
  const capture =
    config.delivery.kind === 'capture'
      ? await startCaptureListener({ receive: inbox.receive, faults, recipientOf, spool, clock, log })
      : null
  return {
    capture,
    inbox,
    operations: [
      ...inboxRoutes(inbox, config.publicUrl),
      ...checkRoutes(inbox, linkCalls(core)),
      ...releaseRoutes(inbox, releaseCalls(core, mac)),
      ...faultRoutes(faults),
    ],
    jobs: [
      createJob({
        name: 'inbox-retention',
        everyMs: RETENTION_EVERY_MS,
        scope: 'database',
        work: (signal) =>
          inbox.sweep({ days: config.inboxRetentionDays, bytesMax: config.inboxRetentionBytes }, signal),
      }),
    ],
    accountDeleted: (accountId) => inbox.clear(accountId, {}),
    async stop() {
      await capture?.close()
      await reader.close()
    },
  }
}

/** Checks, or releases, that run at once, each with up to 5 connections, and those that wait; one at a time for each account. */
const CALLS = { openMax: 4, ownOpenMax: 1, waitingMax: 20, ownWaitingMax: 2 }
const BUSY_SECONDS = 10

/** Runs what calls other servers in turn. @throws TooManyWaiting */
function createTurns() {
  const gate = createKeyedGate(CALLS)
  return async <T>(accountId: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> => {
    const result = await gate.run(accountId, signal, task)
    if (result === null) throw new TooManyWaiting(BUSY_SECONDS)
    return result
  }
}

/** Paths of links that the tracking makes (tracking.md), at whatever host. */
const OWN_PATH = /^\/[ocu]\/[\w-]{20,}$/

function linkCalls({ config, clock, httpClient }: Core): LinkCalls {
  const inTurn = createTurns()
  const ownHosts = new Set(
    [config.publicUrl, config.trackingUrl, config.storageUrl].flatMap((url) =>
      url ? [new URL(url).hostname] : [],
    ),
  )
  const isOwn = (url: URL) => ownHosts.has(url.hostname) || OWN_PATH.test(url.pathname)
  return {
    run: (accountId, links, signal) =>
      inTurn(accountId, signal, () => checkLinks({ client: httpClient, clock, isOwn }, links, signal)),
  }
}

/** Null: nothing is released. */
function releaseCalls({ config, clock }: Core, mac: ReturnPathMac): ReleaseCalls | null {
  if (config.inboxRelease === null) return null
  const inTurn = createTurns()
  const release = createRelease(config.inboxRelease, {
    ...{ clock, heloName: config.hostname, headerPrefix: config.headerPrefix },
    newToken: () => deliveryToken(newId(clock.now()), mac),
  })
  return {
    run: (accountId, mail, to, signal) => inTurn(accountId, signal, () => release(mail, to, signal)),
  }
}

async function recipientOfDelivery(store: Store, deliveryId: string | null): Promise<string | null> {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .select('recipient')
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  return row?.recipient ?? null
}

async function ownerOf(
  { store, firstAccountId }: Core,
  deliveryId: string | null,
): Promise<MailOwner | null> {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .innerJoin('messages', 'messages.id', 'deliveries.message_pk')
    .select(['deliveries.account_id', 'deliveries.variables_json', 'deliveries.list_json'])
    .select(['messages.domain_name', 'messages.id as message_pk'])
    .where('deliveries.id', '=', deliveryId)
    .executeTakeFirst()
  if (!row) return null
  // In batch mode every recipient's copy is a stored message of its own.
  const batch = row.variables_json !== null && row.list_json === null
  const storageKey = batch ? deliveryId : row.message_pk
  const restricted = row.account_id === SYSTEM_ACCOUNT_ID
  const accountId = restricted ? firstAccountId : row.account_id
  return { deliveryId, accountId, domainName: row.domain_name, storageKey, restricted }
}
