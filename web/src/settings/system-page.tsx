/** State of the service: checks, jobs, sizes, addresses. Calls GET /sendwright/v1/system. */
import { Badge, Button, Skeleton } from '@mantine/core'
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { formatBytes } from '../base/format.ts'
import { Count } from '../shared/copyable.tsx'
import { DataTable } from '../shared/page/data-table.tsx'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { EmptyState, Failure } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import {
  checksQuery,
  type Job,
  type SystemCheck,
  type SystemDetails,
  systemDetailsQuery,
} from './settings-api.ts'
import { TEXT as SHARED, spanWords, SYSTEM_TEXT as TEXT } from './text.ts'
import './settings.css'

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const
const COLORS = { ok: 'teal', warning: 'orange', failed: 'red', skipped: 'gray' } as const

/** All parts are shown at once when they are loaded, so that none moves another. */
export default function SystemPage() {
  const system = useQuery(systemDetailsQuery)
  const checks = useQuery(checksQuery)
  const { data, error } = system
  const isLoaded = !system.isPending && !checks.isPending
  const lead = isLoaded && data && (
    <>
      {TEXT.lead(data.version, data.mode, data.database)}, {TEXT.running}{' '}
      <Time at={Date.now() - data.uptime_seconds * 1000} />
    </>
  )
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={lead} back={{ to: '/settings', label: SHARED.title }} />
      {isLoaded ? (
        <>
          {error && <Failure title={TEXT.title} error={error} retry={system.refetch} />}
          <Checks checks={checks} />
          <Space storage={data?.storage} isKnown={data !== undefined} />
          <Jobs jobs={data?.jobs} />
        </>
      ) : (
        <Skeleton height={420} />
      )}
    </Page>
  )
}

function Checks({ checks }: { checks: UseQueryResult<SystemCheck[]> }) {
  const { data, error, refetch, isFetching } = checks
  return (
    <Panel
      title={TEXT.checks}
      flush
      beside={
        <Button variant="default" size="xs" loading={isFetching} onClick={() => void refetch()}>
          {TEXT.again}
        </Button>
      }
    >
      {error && <Failure title={TEXT.checks} error={error} retry={refetch} />}
      {data?.length === 0 && <EmptyState icon="check" title={TEXT.noChecks} />}
      <ul className="settings-checks">
        {data?.map(({ name, state, sentence }) => (
          <li key={name}>
            <Badge {...LOOK} color={COLORS[state]}>
              {TEXT.states[state]}
            </Badge>
            <div>
              <strong className="breakable" title={name}>
                {TEXT.checkNames[name] ?? name}
              </strong>
              <div className="dimmed breakable">{sentence}</div>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const bytesOr = (bytes: number | null) => (bytes === null ? TEXT.unknown : signedBytes(bytes))
const signedBytes = (bytes: number) => (bytes < 0 ? `−${formatBytes(-bytes)}` : formatBytes(bytes))

function Space({ storage, isKnown }: { storage: SystemDetails['storage']; isKnown: boolean }) {
  if (isKnown && !storage)
    return (
      <Panel title={TEXT.space}>
        <EmptyState icon="clock" title={TEXT.notMeasured}>
          {TEXT.notMeasuredWhy}
        </EmptyState>
      </Panel>
    )
  const disk = storage?.disk
  return (
    <Panel title={TEXT.space} flush>
      {storage && disk && (
        <dl className="settings-figures">
          <div>
            <dt>{TEXT.free}</dt>
            <dd>{formatBytes(disk.free_bytes)}</dd>
          </div>
          <div>
            <dt>{TEXT.reserved}</dt>
            <dd>{formatBytes(disk.reserved_bytes)}</dd>
          </div>
          <div>
            <dt>{TEXT.growth}</dt>
            <dd>{bytesOr(disk.growth_bytes_per_day)}</dd>
          </div>
          <div>
            <dt>{TEXT.full}</dt>
            <dd>{disk.full_at === null ? TEXT.notFull : <Time at={disk.full_at} as="date" />}</dd>
          </div>
          <div>
            <dt>{TEXT.measured}</dt>
            <dd>
              <Time at={storage.measured_at} as="age" />
            </dd>
          </div>
        </dl>
      )}
      <DataTable
        label={TEXT.space}
        rows={storage?.kinds}
        rowKey={({ kind }) => kind}
        empty={<EmptyState title={TEXT.notMeasured} />}
        columns={[
          { header: TEXT.kind, cell: ({ kind }) => <strong>{kind}</strong> },
          { header: TEXT.size, align: 'end', cell: ({ bytes }) => formatBytes(bytes) },
          { header: TEXT.rows, align: 'end', cell: ({ rows }) => <Count value={rows} /> },
          { header: TEXT.growth, align: 'end', cell: ({ growth_bytes_per_day: growth }) => bytesOr(growth) },
          {
            header: TEXT.kept,
            align: 'end',
            cell: ({ kept_days, limit_bytes }) =>
              [
                kept_days !== null && TEXT.days(kept_days),
                limit_bytes !== null && TEXT.limit(formatBytes(limit_bytes)),
              ]
                .filter(Boolean)
                .join(', ') || TEXT.unknown,
          },
        ]}
      />
    </Panel>
  )
}

function Jobs({ jobs }: { jobs: readonly Job[] | undefined }) {
  return (
    <Panel title={TEXT.jobs} flush>
      <DataTable
        label={TEXT.jobs}
        rows={jobs}
        rowKey={({ name }) => name}
        empty={<EmptyState title={TEXT.neverRun} />}
        columns={[
          { header: TEXT.job, cell: ({ name }) => <strong className="breakable">{name}</strong> },
          { header: TEXT.every, align: 'end', cell: ({ interval_seconds }) => spanWords(interval_seconds) },
          {
            header: TEXT.lastRun,
            cell: ({ last_ended_at }) =>
              last_ended_at === null ? TEXT.neverRun : <Time at={last_ended_at} as="age" />,
          },
          {
            header: TEXT.state,
            cell: ({ running, last_error }) => (
              <div>
                <Badge {...LOOK} color={last_error !== null ? 'red' : running ? 'blue' : 'teal'}>
                  {last_error !== null ? TEXT.states.failed : running ? TEXT.runsNow : TEXT.waits}
                </Badge>
                {last_error !== null && <div className="dimmed settings-small breakable">{last_error}</div>}
              </div>
            ),
          },
        ]}
      />
    </Panel>
  )
}
