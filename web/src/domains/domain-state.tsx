import { Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { CopyWordsButton } from '../copy-button.tsx'
import { exactTime, shortAge } from '../format.ts'
import { Icon } from '../icons.tsx'
import { RefusedRequest, systemQuery, valueOrThrow } from '../queries.ts'
import { downloadLink } from '../shared/download.ts'
import { useNow } from '../use-now.ts'
import { useSecondsLeft } from '../use-seconds-left.ts'
import { DOMAINS_KEY, zoneQuery } from './domain-queries.ts'
import { type DomainDetails, type DomainDns, verifyDomain, zonePath } from './domains-api.ts'
import { lastCheckedMs, stillNeeded } from './records.ts'

/** The state of the domain, what to do next, and the buttons for it. */
export function DomainState({ domain, dns }: { domain: DomainDetails; dns: DomainDns }) {
  const { name, state } = domain
  const zone = useQuery(zoneQuery(name, state === 'unverified'))
  return (
    <section className="panel domain-state" data-state={state} aria-label="State">
      <StateWords domain={domain} dns={dns} />
      <Group mt="md" gap="sm">
        <CheckNow name={name} />
        <CopyWordsButton text={zone.data} words="Copy all as zone file" />
        <Button
          component="a"
          variant="default"
          {...downloadLink(zonePath(name), `${name}.zone`)}
          leftSection={<Icon name="download" size={16} />}
        >
          Download
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
        <Text fw={600}>This domain may send.</Text>
        <Text size="sm" c="dimmed" mt={4}>
          SPF and DKIM were right at the last look. Check again after every change at your DNS provider.
        </Text>
      </>
    )
  const needed = stillNeeded(dns.records)
  return (
    <>
      <Text fw={600}>
        {needed.length > 0
          ? `Publish the records below at your DNS provider, then check. Still needed: ${needed.join(' and ')}.`
          : 'SPF and DKIM are right. Check once more to verify the domain.'}
      </Text>
      <Text size="sm" c="dimmed" mt={4}>
        {system?.mode === 'capture'
          ? 'In capture mode the domain can send before that, since no mail leaves the machine. '
          : 'Until then the domain cannot send, unless this service is set to allow it. '}
        The service also looks by itself, every ten minutes on the first day, and this page follows.
      </Text>
    </>
  )
}

function DisabledWords({ domain: { disabled } }: { domain: DomainDetails }) {
  const untilMs = Date.parse(disabled?.until ?? '')
  return (
    <>
      <Text fw={600}>
        This domain is disabled and cannot send{Number.isFinite(untilMs) && ` until ${exactTime(untilMs)}`}.
      </Text>
      <Text size="sm" c="dimmed" mt={4} className="breakable">
        {[disabled?.reason, disabled?.note].filter(Boolean).join('. ')} Right records do not change that: ask
        the operator of this service.
      </Text>
    </>
  )
}

/** Checks DNS now. After a refusal for too many checks the button counts down the wait. */
function CheckNow({ name }: { name: string }) {
  const queries = useQueryClient()
  const check = useMutation({
    mutationFn: async () => valueOrThrow(await verifyDomain(name)),
    onSuccess: () => queries.invalidateQueries({ queryKey: [DOMAINS_KEY] }),
  })
  const refused = check.error instanceof RefusedRequest && check.error.status === 429 ? check.error : null
  const left = useSecondsLeft(refused, refused?.retrySeconds ?? 0)
  const failure = refused
    ? left > 0 && 'Checked too often: DNS needs a moment to change anyway.'
    : check.error?.message
  return (
    <>
      <Button
        leftSection={<Icon name="refresh" size={16} />}
        loading={check.isPending}
        disabled={left > 0}
        onClick={() => check.mutate()}
      >
        {left > 0 ? `Check again in ${left} s` : 'Check now'}
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
  const now = useNow()
  const age = ms === undefined ? '' : shortAge(ms, Math.max(now, Date.now()))
  return (
    <Text size="sm" c="dimmed" role="status">
      {ms === undefined ? (
        'Not checked yet'
      ) : (
        <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>
          Last checked {age === 'now' ? 'just now' : /^\d/.test(age) ? `${age} ago` : age}
        </time>
      )}
    </Text>
  )
}
