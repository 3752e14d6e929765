import { queryOptions, useQuery } from '@tanstack/react-query'
import { getJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { systemQuery, valueOrThrow } from '../../queries.ts'
import { TEXT } from '../text.ts'
import { domainOptions } from './choices.ts'
import { Chooser } from './chooser.tsx'

interface DomainChoiceProps {
  /** Empty: none is chosen. */
  value: string
  onChange: (name: string) => void
  /** Label of the empty value; without it one of the domains must be chosen. */
  none?: string
  /** Shown above; default: read by screen readers only. */
  label?: string
  /** Mail is to be sent from it: those that may not send are marked with the reason. */
  toSend?: boolean
  autoFocus?: boolean
}

/** Chooses one of the account's sending domains, found by a part of its name. */
export function DomainChoice({ label, toSend = false, ...props }: DomainChoiceProps) {
  const { data: system } = useQuery({ ...systemQuery, enabled: toSend })
  const { data: chosen } = useQuery({ ...oneDomainQuery(props.value), enabled: toSend && props.value !== '' })
  const notSending = (domain: Api.Domain) => whyNotSending(domain, system?.mode)
  const why = chosen && toSend ? notSending(chosen) : undefined
  return (
    <Chooser
      {...props}
      label={label ?? TEXT.domain}
      showLabel={label !== undefined}
      options={toSend ? domainOptions('to send', notSending) : domainOptions()}
      {...(why !== undefined && { description: why })}
    />
  )
}

/** The domain of the page's URL, else the newest that may send, else the newest; '' while that is asked for, or if there is none. */
export function useChosenDomain(given: string | undefined): string {
  const { data } = useFirstDomain(given === undefined)
  return given ?? data?.name ?? ''
}

/** The domain that forms begin with; null: there is none. */
export function useFirstDomain(enabled = true) {
  const { data: system } = useQuery(systemQuery)
  const mode = system?.mode
  return useQuery({ ...firstDomainQuery(mode), enabled: enabled && mode !== undefined })
}

type Mode = Api.Answers['GET /sendwright/v1/system']['mode'] | undefined

/** Why a domain sends no mail, by messages.md rule 9; undefined: it may. */
function whyNotSending(domain: Api.Domain, mode: Mode): string | undefined {
  if (domain.is_disabled) return TEXT.sendsNot.disabled
  if (mode === 'capture') return undefined
  if (domain.state === 'unverified') return TEXT.sendsNot.unverified
  return domain.type === 'sandbox' && mode === 'direct' ? TEXT.sendsNot.sandbox : undefined
}

const newestDomains = async (state: 'active' | 'unverified' | undefined, signal: AbortSignal) =>
  valueOrThrow(await getJson(`/v4/domains?limit=1${state ? `&state=${state}` : ''}`, signal)).items

const firstDomainQuery = (mode: Mode) =>
  queryOptions({
    queryKey: ['domains', 'first', mode],
    async queryFn({ signal }) {
      // The sandbox is the oldest domain: it is the newest only if it is the only one. It is active, and times are in whole seconds: of
      // the same second the unverified one is first.
      const sending = await Promise.all([
        mode === 'capture' ? newestDomains('unverified', signal) : [],
        newestDomains('active', signal),
      ])
      const newest = sending.flat().sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
      return newest[0] ?? (await newestDomains(undefined, signal))[0] ?? null
    },
  })

const oneDomainQuery = (name: string) =>
  queryOptions({
    queryKey: ['domains', 'plain', name],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`/v4/domains/${encodeURIComponent(name)}`, signal)).domain,
  })
