/** A provider that blocks one address of four, by a stepped clock: the real engine, SMTP over sockets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAddressRig } from '../../../../test/support/address-rig.ts'
import { createTestClock } from '../../../../test/support/clock.ts'
import { watched, withStore } from '../../../../test/support/engine-rig.ts'
import { seedQueue } from '../../../../test/support/seed-queue.ts'
import { ownAddress } from '../../../../test/support/service.ts'
import { settle } from '../../../../test/support/warmup-month.ts'
import { PROBES_TO_OPEN } from './blocks.ts'
import { REPLIES_TO_CLOSE } from './evidence.ts'

const ACCOUNT = 'first'
const MINUTE_MS = 60_000
const STEP_MS = 20_000
/** Each share of each domain in a step. */
const PER_SHARE = 3
const [STRICT, OTHER] = ['strict', 'other']
const DOMAINS = [0, 1, 2, 3]
const REFUSAL = '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using dnsbl.example.net'
/** All of two domains, one of a third, and those in progress. */
const REFUSED_MAX = (REPLIES_TO_CLOSE - 1) * PER_SHARE + 1 + 4
const LIMITS = { connections: 4, messagesPerConnection: 100, messagesPerSecond: null }

/** Received in a step: `<site> <address>`, and `<site> <share> <address>`. */
type Counts = Map<string, number>

async function withBlockedAddress(
  run: (rig: {
    ips: string[]
    step(): Promise<Counts>
    leap(ms: number): Promise<void>
    setBlocking(ip: string | null): void
    /** Refused by the strict provider. */
    refused(): number
    failed(): number
    stateOf(ip: string): string
    untilOf(ip: string): number
  }) => Promise<void>,
) {
  await withStore(async (opened) => {
    const idle = watched(opened)
    const { store } = idle
    const clock = createTestClock()
    const ips = Array.from({ length: 4 }, ownAddress).sort() // as the engine has them: .10 before .9
    let failed = 0
    const rig = await createAddressRig({
      ...{ store, clock, accountId: ACCOUNT, ips, plan: [] },
      sites: [STRICT, OTHER].map((name) => ({
        name,
        domains: DOMAINS.map((at) => `${name}${at}.example`),
        limits: LIMITS,
      })),
      engine: {
        // As the classification judges the refusal.
        judge: ({ message }) => ({
          ...{ ruleId: 'generic-blocklist', reason: 'espblock' },
          blocksAddress: message.includes('blocked using'),
        }),
        consequences(_delivery, _events, outcome) {
          if (outcome.kind === 'bounced') failed++
          return []
        },
      },
    })
    let blocking: string | null = null
    let refused = 0
    rig.sinks.get(STRICT)?.on('MAIL', ({ remoteAddress }) => {
      if (remoteAddress !== blocking) return '250 2.1.0 Ok'
      refused++
      return REFUSAL
    })
    /** Shares by the message that they were seeded with. */
    const shareOf = new Map<string, string>()

    async function step(): Promise<Counts> {
      for (const site of [STRICT, OTHER])
        for (const at of DOMAINS)
          for (const share of ips.keys()) {
            const about = { accountId: ACCOUNT, domainId: 'd', recipientDomain: `${site}${at}.example` }
            const dueAt = clock.now()
            const ids = await seedQueue(store, { ...about, count: PER_SHARE, dueAt, sourceKey: `#${share}` })
            for (const id of ids) shareOf.set(id, `${site} ${share}`)
          }
      rig.engine.wake()
      await settle(clock, idle)
      await rig.blocks.written()
      const counts: Counts = new Map()
      const add = (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
      for (const [site, sink] of rig.sinks)
        for (const { remoteAddress, raw } of sink.messages.splice(0)) {
          const id = /Message-ID: <([^@]*)@/i.exec(raw.toString())?.[1] ?? ''
          add(`${site} ${remoteAddress}`)
          add(`${shareOf.get(id)} ${remoteAddress}`)
        }
      await clock.advance(Math.max(0, STEP_MS - (clock.now() % STEP_MS)))
      return counts
    }

    try {
      await rig.engine.start()
      await run({
        ips,
        step,
        async leap(ms) {
          clock.leap(ms)
          await clock.advance(1)
        },
        setBlocking: (ip) => (blocking = ip),
        refused: () => refused,
        failed: () => failed,
        stateOf: (ip) => rig.blocks.stateOf(ip, STRICT),
        untilOf: (ip) => (rig.blocks.find(ip, STRICT)?.until_at ?? 0) - clock.now(),
      })
    } finally {
      await rig.close()
    }
  })
}

test('the traffic of a blocked address moves to the others within a minute, theirs is unchanged, and it comes back', async (t) => {
  await withBlockedAddress(async ({ ips, step, leap, setBlocking, refused, failed, stateOf, untilOf }) => {
    const [blocked = '', ...others] = ips
    const perShare = DOMAINS.length * PER_SHARE
    const before = await step()
    for (const ip of ips) assert.equal(before.get(`${STRICT} ${ip}`), perShare)

    setBlocking(blocked)
    await step()
    await step()
    const moved = [await step(), await step()]
    assert.equal(stateOf(blocked), 'closed')
    const total = others.length * perShare + perShare
    for (const counts of moved) {
      assert.equal(counts.get(`${STRICT} ${blocked}`), undefined)
      const sum = others.reduce((all, ip) => all + (counts.get(`${STRICT} ${ip}`) ?? 0), 0)
      assert.equal(sum, total, 'all of it arrives by the others')
      for (const [at, ip] of others.entries())
        assert.equal(counts.get(`${STRICT} ${at + 1} ${ip}`), perShare, `what ${ip} sent before`)
      for (const ip of ips) assert.equal(counts.get(`${OTHER} ${ip}`), perShare, 'another provider')
    }
    const refusedThen = refused()
    assert.ok(refusedThen >= REPLIES_TO_CLOSE && refusedThen <= REFUSED_MAX, `${refusedThen}`)
    assert.equal(failed(), refusedThen, 'a refusal for good ends those messages')

    // Still blocked after the pause: one probe at a time, of several domains, and twice the pause.
    await leap(untilOf(blocked))
    assert.equal(stateOf(blocked), 'probing')
    for (let steps = 0; stateOf(blocked) === 'probing'; steps++) {
      assert.ok(steps < 10, 'it is closed again')
      const probed = await step()
      assert.equal(probed.get(`${STRICT} ${blocked}`), undefined)
    }
    assert.ok(refused() >= refusedThen + REPLIES_TO_CLOSE, `${refused()}`)
    assert.ok(untilOf(blocked) > 110 * MINUTE_MS && untilOf(blocked) <= 120 * MINUTE_MS)

    const rates = moved.map((counts) => others.map((ip, at) => counts.get(`${STRICT} ${at + 1} ${ip}`)))
    t.diagnostic(
      `moved within ${(2 * STEP_MS) / 1_000} s, ${refusedThen} refused until then; own messages of the others in each ` +
        `step: ${perShare} before, ${rates.join(' and ')} after`,
    )

    setBlocking(null)
    await leap(untilOf(blocked))
    let back = new Map<string, number>()
    for (let steps = 0; stateOf(blocked) !== 'open'; steps++) {
      assert.ok(steps < 10, 'it comes back')
      back = await step()
    }
    assert.ok((back.get(`${STRICT} ${blocked}`) ?? 0) >= 1)
    const after = await step()
    t.diagnostic(`open again; it sends ${after.get(`${STRICT} ${blocked}`)} in a step, as before`)
    for (const ip of ips) assert.equal(after.get(`${STRICT} ${ip}`), perShare)
    assert.ok(PROBES_TO_OPEN > 1)
  })
})
