/** Validates addresses: gathers what is known of each, asks DNS, and the receiving server where that is switched on. */
import { readAddress, type ValidAddress } from './address.ts'
import type { DomainMailLookup } from './domain-mail.ts'
import type { OwnData } from './own-data.ts'
import type { ValidationResult } from './shapes.ts'
import type { SmtpProbe } from './smtp-probe.ts'
import { type Facts, type History, malformedResult, needsProbe, resultOf } from './verdict.ts'

interface ValidateOptions {
  /** Ask the provider if nothing else decides. */
  providerLookup: boolean
  /** False: nothing is sent to anybody, not even to DNS. */
  network: boolean
  /** Receiving servers may be asked, if that is switched on at all. */
  asksServers: boolean
  signal?: AbortSignal
}

export type Validator = ReturnType<typeof createValidator>

const NO_HISTORY: History = { bounced: false, deliveredAt: null, engagement: null }

export function createValidator(parts: {
  ownData: OwnData
  domainMail: DomainMailLookup
  /** Null: switched off. */
  probe: SmtpProbe | null
}) {
  const { ownData, domainMail, probe } = parts

  async function resultFor(
    accountId: string,
    address: ValidAddress,
    history: History,
    { network, providerLookup, asksServers, signal }: ValidateOptions,
  ): Promise<ValidationResult> {
    const mail = network ? await domainMail.of(accountId, address.domain, signal) : 'unknown'
    const facts: Omit<Facts, 'probe'> = { mail, history, providerLookup }
    const asks = probe !== null && network && asksServers && needsProbe(address, facts)
    return resultOf(address, { ...facts, probe: asks ? await probe.ask(address) : 'unknown' })
  }

  return {
    /**
     * Results in the order of the addresses. Those that were not reached before `signal` aborted are missing: the list
     * ends before the first of them.
     */
    async validate(
      accountId: string,
      addresses: readonly string[],
      options: ValidateOptions,
    ): Promise<ValidationResult[]> {
      const read = addresses.map((given) => ({ given, read: readAddress(given) }))
      const keys = read.flatMap(({ read: one }) => (one.kind === 'valid' ? [one.address.key] : []))
      const histories = await ownData.historyOf(accountId, [...new Set(keys)])
      const results = await Promise.all(
        read.map(async ({ given, read: one }) => {
          if (one.kind === 'malformed') return malformedResult(given, one.reason)
          const history = histories.get(one.address.key) ?? NO_HISTORY
          try {
            return await resultFor(accountId, one.address, history, options)
          } catch (error) {
            if (options.signal?.aborted) return null
            throw error
          }
        }),
      )
      const end = results.indexOf(null)
      return (end < 0 ? results : results.slice(0, end)) as ValidationResult[]
    },
  }
}
