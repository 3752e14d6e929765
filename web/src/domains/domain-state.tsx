import { Button, Group, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { CopyWordsButton } from '../base/copy-button.tsx'
import { exactTime } from '../base/format.ts'
import { useSecondsLeft } from '../base/use-seconds-left.ts'
import { Icon } from '../look/icons.tsx'
import { RefusedRequest, systemQuery, valueOrThrow } from '../queries.ts'
import { downloadLink } from '../shared/download.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { Time } from '../shared/time.tsx'
import { DOMAINS_KEY, zoneQuery } from './domain-queries.ts'
import { type DomainDetails, type DomainDns, verifyDomain, zonePath } from './domains-api.ts'
import { DnsWriting } from './records/dns-writing.tsx'
import { lastCheckedMs, stillNeeded } from './records/records.ts'
import { DOMAIN_TEXT as TEXT } from './text.ts'

/** The state of the domain, what to do next, and the buttons for it. */
export function DomainState({ domain, dns }: { domain: DomainDetails; dns: DomainDns }) {
  const { name, state } = domain
  const zone = useQuery(zoneQuery(name, state === 'unverified'))
  return (
    <section className="panel domain-state" data-state={state} aria-label={TEXT.state}>
      <StateWords domain={domain} dns={dns} />
      <Group mt="md" gap="sm">
        <CheckNow name={name} />
        <DnsWriting name={name} />
        <CopyWordsButton text={zone.data} words={TEXT.copyZone} />
        <Button
          component="a"
          variant="default"
          {...downloadLink(zonePath(name), `${name}.zone`)}
          leftSection={<Icon name="download" size={16} />}
        >
          {TEXT.download}
        </Button>
        <LastChecked ms={lastCheckedMs(dns)} />
      </Group>
    </section>
  )
}

function StateWords({ domain, dns }: { domain: DomainDetails; dns: DomainDns }) {
  const { data: system } = useQuery(systemQuery)
  if (domain.state === 'disabled') return <DisabledWords domain={domain} />
  if (domain.state === 'active')
    return (
      <>
        <Text fw={600}>{TEXT.maySend}</Text>
        <Text size="sm" c="dimmed" mt={4}>
          {TEXT.maySendWhy}
        </Text>
      </>
    )
  const needed = stillNeeded(dns.records)
  return (
    <>
      <Text fw={600}>{needed.length > 0 ? TEXT.publish(needed) : TEXT.verify}</Text>
      <Text size="sm" c="dimmed" mt={4}>
        {system?.mode === 'capture' ? TEXT.captured : TEXT.cannotSend} {TEXT.looks}
      </Text>
    </>
  )
}

function DisabledWords({ domain: { disabled } }: { domain: DomainDetails }) {
  const untilMs = Date.parse(disabled?.until ?? '')
  return (
    <>
      <Text fw={600}>{TEXT.disabled(Number.isFinite(untilMs) ? exactTime(untilMs) : '')}</Text>
      <Text size="sm" c="dimmed" mt={4} className="breakable">
        {[disabled?.reason, disabled?.note].filter(Boolean).join('. ')} {TEXT.disabledWhy}
      </Text>
    </>
  )
}

/** Checks DNS now. After a refusal for too many checks the button counts down the wait. */
function CheckNow({ name }: { name: string }) {
  const queries = useQueryClient()
  const check = useSending({
    mutationFn: async () => valueOrThrow(await verifyDomain(name)),
    onSuccess: () => queries.invalidateQueries({ queryKey: [DOMAINS_KEY] }),
  })
  const refused = check.error instanceof RefusedRequest && check.error.status === 429 ? check.error : null
  const left = useSecondsLeft(refused, refused?.retrySeconds ?? 0)
  const failure = refused ? left > 0 && TEXT.tooOften : check.error?.message
  return (
    <>
      <Button
        leftSection={<Icon name="refresh" size={16} />}
        loading={check.isPending}
        disabled={left > 0}
        onClick={() => check.mutate()}
      >
        {left > 0 ? TEXT.checkIn(left) : TEXT.check}
      </Button>
      {failure && (
        <Text size="sm" c="red" role="alert" className="domain-state-line">
          {failure}
        </Text>
      )}
    </>
  )
}

function LastChecked({ ms }: { ms: number | undefined }) {
  return (
    <Text size="sm" c="dimmed" role="status">
      {ms === undefined ? (
        TEXT.notChecked
      ) : (
        <>
          {TEXT.lastChecked} <Time at={ms} as="age" />
        </>
      )}
    </Text>
  )
}
