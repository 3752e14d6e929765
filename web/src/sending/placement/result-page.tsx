/** One placement test: where each seed found the mail. Calls GET /v4/inbox/results/:id. */
import { Alert, Badge, Button, Skeleton, Switch, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { RefusedRequest, valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import {
  type Counts,
  changeSharing,
  deleteResult,
  type PlacementResult,
  readResult,
  readSharing,
  type SeedResult,
} from './placement-api.ts'
import { PLACEMENT_KEY, REFRESH_MS, TestStatus } from './placement-page.tsx'
import { TEXT } from './text.ts'
import './placement.css'

const route = getRouteApi('/sending/placement/$id')
const BACK = { to: '/sending/placement', label: TEXT.title }

export default function ResultPage() {
  const { id } = route.useParams()
  const result = useQuery({
    queryKey: [PLACEMENT_KEY, 'result', id],
    queryFn: async ({ signal }) => valueOrThrow(await readResult(id, signal)).result,
    refetchInterval: ({ state }) => (state.data?.status === 'processing' ? REFRESH_MS : false),
  })
  if (result.data !== undefined)
    return (
      <Page wide key={id}>
        <Found result={result.data} />
      </Page>
    )
  const isGone = result.error instanceof RefusedRequest && result.error.status === 404
  return (
    <Page wide>
      <PageHeader title={isGone ? TEXT.gone : TEXT.title} back={BACK} />
      {isGone ? (
        <Alert color="gray">{TEXT.goneWhy}</Alert>
      ) : result.error !== null ? (
        <Failure title={TEXT.title} error={result.error} retry={result.refetch} />
      ) : (
        <Skeleton height={320} role="status" aria-label={TEXT.title} />
      )}
    </Page>
  )
}

function Found({ result }: { result: PlacementResult }) {
  const mayWrite = useMay({ area: 'validation', access: 'write' })
  const { status, sender, created_at, seed_results, delivery_stats, spamassassin } = result
  return (
    <>
      <PageHeader
        title={result.subject}
        back={BACK}
        beside={<TestStatus status={status} />}
        lead={
          <>
            <span className="breakable">{sender}</span>, <Time at={created_at} />
            {status === 'processing' && <>. {TEXT.waiting}</>}
          </>
        }
        actions={mayWrite && <Remove id={result.result_id} />}
      />
      {spamassassin && (
        <Text size="sm">
          {TEXT.spamScore}: {TEXT.spamScoreOf(spamassassin.score.toFixed(1), spamassassin.is_spam)}
        </Text>
      )}
      {seed_results.length === 0 ? (
        <Panel>
          <EmptyState icon="mail" title={TEXT.noCopies}>
            {TEXT.noSeedsWhy}
          </EmptyState>
        </Panel>
      ) : (
        <>
          <Panel title={TEXT.byProvider} flush>
            <DataTable
              label={TEXT.byProvider}
              columns={PROVIDER_COLUMNS}
              rows={Object.entries(delivery_stats)}
              rowKey={([name]) => name}
              empty={null}
            />
          </Panel>
          <Panel title={TEXT.copies} flush>
            <DataTable
              label={TEXT.copies}
              columns={SEED_COLUMNS}
              rows={seed_results}
              rowKey={({ email }) => email}
              empty={null}
            />
          </Panel>
        </>
      )}
      {mayWrite && <Share id={result.result_id} />}
    </>
  )
}

const PROVIDER_COLUMNS: readonly Column<[string, Counts]>[] = [
  { header: TEXT.provider, cell: ([name]) => <strong className="breakable">{name}</strong> },
  ...(['inbox', 'spam', 'missing', 'pending'] as const).map(
    (name): Column<[string, Counts]> => ({
      header: TEXT[name],
      align: 'end',
      cell: ([, counts]) => counts[name].toLocaleString('en'),
    }),
  ),
]

const SEED_COLUMNS: readonly Column<SeedResult>[] = [
  { header: TEXT.mailbox, cell: ({ email }) => <span className="breakable">{email}</span> },
  { header: TEXT.where, cell: (seed) => <Place seed={seed} /> },
  {
    header: TEXT.after,
    align: 'end',
    cell: ({ extensions: { seconds } }) => (seconds === undefined ? '–' : TEXT.seconds(seconds)),
  },
  {
    header: TEXT.checks,
    cell: ({ spf, dkim, dmarc }) => [spf, dkim, dmarc].map((each) => each || '–').join(', '),
  },
]

function Place({ seed: { state, destination, extensions } }: { seed: SeedResult }) {
  const isSpam = destination === 'spam'
  const [color, words] =
    state === 'pending'
      ? ['gray', TEXT.pending]
      : state === 'missing'
        ? ['red', TEXT.missing]
        : isSpam
          ? ['orange', TEXT.spam]
          : destination === 'inbox'
            ? ['teal', TEXT.categories[extensions.category] ?? TEXT.inbox]
            : ['gray', destination]
  return (
    <span>
      <Badge variant="light" tt="none" fw={550} color={color}>
        {words}
      </Badge>
      {extensions.problem && <span className="dimmed breakable placement-problem">{extensions.problem}</span>}
    </span>
  )
}

function Share({ id }: { id: string }) {
  const queries = useQueryClient()
  const queryKey = [PLACEMENT_KEY, 'sharing', id]
  const sharing = useQuery({
    queryKey,
    queryFn: async ({ signal }) => valueOrThrow(await readSharing(id, signal)).sharing,
  })
  const changing = useSending({
    mutationFn: async (enabled: boolean) => valueOrThrow(await changeSharing(id, enabled)).sharing,
    onSuccess: (changed) => queries.setQueryData(queryKey, changed),
  })
  const error = changing.error ?? sharing.error
  const { enabled = false, url, expires_at } = sharing.data ?? {}
  return (
    <Panel title={TEXT.share}>
      <Switch
        label={TEXT.shared}
        description={TEXT.shareWhy}
        checked={enabled}
        disabled={sharing.data === undefined || changing.isPending}
        onChange={(event) => changing.mutate(event.currentTarget.checked)}
      />
      {enabled && url !== undefined && expires_at !== undefined && (
        <div className="placement-link">
          <Copyable text={url} what={TEXT.link} />
          <span className="dimmed">
            {TEXT.until} <Time at={expires_at} as="date" />
          </span>
        </div>
      )}
      {error && (
        <Text size="sm" c="red" mt="sm" role="alert" className="breakable">
          {error.message}
        </Text>
      )}
    </Panel>
  )
}

function Remove({ id }: { id: string }) {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await deleteResult(id)),
    async onSuccess() {
      notify({ text: TEXT.deleted })
      await navigate({ to: '/sending/placement' })
      await queries.invalidateQueries({ queryKey: [PLACEMENT_KEY] })
    },
  })
  return (
    <>
      <Button variant="default" onClick={() => setAsking(true)}>
        {TEXT.deleteResult}
      </Button>
      <Confirm
        opened={asking}
        title={TEXT.deleteResult}
        consequence={TEXT.deleteWhy}
        action={TEXT.deleteResult}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={() => setAsking(false)}
      />
    </>
  )
}
