/** One bulk validation and its result. Calls GET /v4/address/validate/bulk/:id. */
import { Alert, Button, Group, Skeleton, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { pathOfLink } from '../../api.ts'
import { Confirm } from '../../base/confirm.tsx'
import { RefusedRequest, valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { downloadLink } from '../../shared/download.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { ProgressLine } from '../../shared/page/progress.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { StatusBadge } from './badges.tsx'
import { TEXT } from './text.ts'
import { isRunning, readJob, removeJob, type ValidationJob } from './validation-api.ts'
import { REFRESH_MS, VALIDATION_KEY } from './validation-page.tsx'

const route = getRouteApi('/sending/validation/$id')
const BACK = { to: '/sending/validation', label: TEXT.title }

export default function JobPage() {
  const { id } = route.useParams()
  const job = useQuery({
    queryKey: [VALIDATION_KEY, 'one', id],
    queryFn: async ({ signal }) => valueOrThrow(await readJob(id, signal)),
    refetchInterval: ({ state }) => (state.data && isRunning(state.data) ? REFRESH_MS : false),
  })
  const isGone = job.error instanceof RefusedRequest && job.error.status === 404
  return (
    <Page key={id}>
      {job.data !== undefined && !isGone ? (
        <Found job={job.data} />
      ) : (
        <>
          <PageHeader title={id} back={BACK} />
          {isGone ? (
            <Alert color="gray" title={TEXT.gone(id)} className="breakable" />
          ) : job.error !== null ? (
            <Failure title={id} error={job.error} retry={job.refetch} />
          ) : (
            <Skeleton height={220} role="status" aria-label={TEXT.summary} />
          )}
        </>
      )}
    </Page>
  )
}

function Found({ job }: { job: ValidationJob }) {
  const mayWrite = useMay({ area: 'validation', access: 'write' })
  const { id, status, quantity, records_processed, download_url: urls, summary } = job
  return (
    <>
      <PageHeader
        title={id}
        back={BACK}
        beside={<StatusBadge status={status} />}
        actions={mayWrite && <Remove job={job} />}
      />
      {isRunning(job) && (
        <Panel>
          {records_processed === null ? (
            <Text size="sm" role="status">
              {TEXT.reading}
            </Text>
          ) : (
            <ProgressLine label={TEXT.progress} done={records_processed} of={quantity} what="row" />
          )}
        </Panel>
      )}
      {status === 'failed' && <Alert color="red" title={TEXT.failed} role="alert" />}
      {status === 'canceled' && <Alert color="gray" title={TEXT.canceled} />}
      {summary && <Summary summary={summary} />}
      {urls && (
        <Panel title={TEXT.downloads}>
          <Text size="sm" c="dimmed">
            {TEXT.downloadsWhy}
          </Text>
          <Group mt="sm">
            <Button component="a" {...downloadLink(pathOfLink(urls.csv), `${id}.csv`)}>
              {TEXT.csv}
            </Button>
            <Button component="a" variant="default" {...downloadLink(pathOfLink(urls.json), `${id}.json`)}>
              {TEXT.json}
            </Button>
          </Group>
        </Panel>
      )}
    </>
  )
}

function Summary({ summary }: { summary: NonNullable<ValidationJob['summary']> }) {
  const tables = [
    [TEXT.result, summary.result, TEXT.results],
    [TEXT.risk, summary.risk, TEXT.risks],
  ] as const
  return (
    <div className="validation-summary">
      {tables.map(([title, counts, names]) => (
        <Panel key={title} title={title} flush>
          <DataTable
            label={title}
            columns={[
              { header: title, cell: ([name]) => names[name] ?? name },
              { header: TEXT.addresses, align: 'end', cell: ([, count]) => count.toLocaleString('en') },
            ]}
            rows={Object.entries(counts)}
            rowKey={([name]) => name}
            empty={null}
          />
        </Panel>
      ))}
    </div>
  )
}

function Remove({ job }: { job: ValidationJob }) {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const isCancel = isRunning(job)
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await removeJob(job.id)),
    async onSuccess() {
      setAsking(false)
      if (!isCancel) {
        notify({ text: TEXT.removed(job.id) })
        await navigate({ to: '/sending/validation' })
      }
      await queries.invalidateQueries({ queryKey: [VALIDATION_KEY] })
    },
  })
  return (
    <>
      <Button variant="default" onClick={() => setAsking(true)}>
        {isCancel ? TEXT.cancel : TEXT.remove}
      </Button>
      <Confirm
        opened={asking}
        title={isCancel ? TEXT.cancel : TEXT.remove}
        consequence={isCancel ? TEXT.cancelWhy : TEXT.removeWhy}
        action={isCancel ? TEXT.cancel : TEXT.remove}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={() => setAsking(false)}
      />
    </>
  )
}
