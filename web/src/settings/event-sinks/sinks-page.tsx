/** Where events are sent. Calls /sendwright/v1/event-sinks. */
import { Badge, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { TEXT as SHARED } from '../text.ts'
import { SinkForm } from './sink-form.tsx'
import { changeSink, removeSink, SINKS_KEY, type Sink, sinksQuery } from './sinks-api.ts'
import { errorWords, lagWords, TEXT } from './text.ts'
import '../settings.css'

const route = getRouteApi('/settings/event-sinks')

export default function SinksPage() {
  const { add, edit } = route.useSearch()
  const navigate = useNavigate({ from: '/settings/event-sinks' })
  const mayChange = useMay({ area: 'account', access: 'write', only: 'first' })
  const list = useQuery(sinksQuery)
  const edited = list.data?.find(({ name }) => name === edit)
  const close = () => void navigate({ replace: true, search: {} })
  const button = mayChange && (
    <AddButton label={TEXT.add} onClick={() => void navigate({ replace: true, search: { add: 'yes' } })} />
  )
  const columns: Column<Sink>[] = [
    {
      header: TEXT.sink,
      cell: (sink) => (
        <div>
          {mayChange ? (
            <Link
              to="/settings/event-sinks"
              replace
              search={{ edit: sink.name }}
              className="row-link breakable"
              title={TEXT.changeOf(sink.name)}
            >
              {sink.name}
            </Link>
          ) : (
            <strong className="breakable">{sink.name}</strong>
          )}
          <div className="settings-small breakable">{TEXT.kinds[sink.kind]}</div>
          <div className="dimmed settings-small breakable">{placeOf(sink)}</div>
        </div>
      ),
    },
    { header: TEXT.state, cell: (sink) => <State sink={sink} /> },
    {
      header: TEXT.behind,
      means: TEXT.behindMeans,
      align: 'end',
      cell: ({ behind_seconds }) => lagWords(behind_seconds),
    },
    {
      header: TEXT.sent,
      align: 'end',
      cell: ({ sent, sent_at }) => (
        <div>
          {sent.toLocaleString('en')}
          {sent_at !== null && (
            <div className="dimmed settings-small">
              {TEXT.sentLast} <Time at={sent_at} as="age" />
            </div>
          )}
        </div>
      ),
    },
    ...(mayChange ? [{ ...BUTTONS, cell: (sink: Sink) => <Actions sink={sink} /> }] : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/settings', label: SHARED.title }}
      actions={button}
      list={list}
      rows={list.data}
      rowKey={({ name }) => name}
      columns={columns}
      empty={
        <EmptyState icon="send" title={TEXT.none} action={button}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
      {mayChange && add === 'yes' && <SinkForm onClose={close} />}
      {mayChange && edited && <SinkForm key={edited.name} sink={edited} onClose={close} />}
    </ListPage>
  )
}

/** Where it leads, on one line. */
const placeOf = ({ url, servers, topic, bucket }: Sink) =>
  [url ?? servers?.join(', '), bucket ?? topic].filter(Boolean).join(' · ')

function State({ sink }: { sink: Sink }) {
  const { paused, failing_since, last_error, warning, skipped, skipped_from, skipped_to } = sink
  const state = paused ? 'paused' : failing_since === null ? 'ok' : 'failing'
  return (
    <div>
      <Badge variant="light" tt="none" fw={550} color={{ ok: 'teal', failing: 'red', paused: 'gray' }[state]}>
        {TEXT.states[state]}
      </Badge>
      {state === 'failing' && failing_since !== null && (
        <div className="settings-small breakable">
          {TEXT.since} <Time at={failing_since} as="age" />. {errorWords(last_error ?? '')}
        </div>
      )}
      {warning !== null && <div className="settings-small breakable">{warning}</div>}
      {skipped_from !== null && skipped_to !== null && (
        <div className="settings-small" title={TEXT.skippedWhy}>
          {TEXT.skipped(skipped)} <Time at={skipped_from} /> {TEXT.until} <Time at={skipped_to} />
        </div>
      )}
    </div>
  )
}

function Actions({ sink }: { sink: Sink }) {
  const { name, paused = false } = sink
  const pause = () => changeSink(sink, { paused: true })
  const resume = () => changeSink(sink, { paused: false })
  return (
    <Group gap="xs" justify="flex-end">
      {paused ? (
        <ActionButton
          label={TEXT.resume}
          name={TEXT.resumeOf(name)}
          run={resume}
          done={TEXT.resumed(name)}
          undo={pause}
          undone={TEXT.paused(name)}
          changes={SINKS_KEY}
        />
      ) : (
        <ActionButton
          label={TEXT.pause}
          name={TEXT.pauseOf(name)}
          run={pause}
          done={TEXT.paused(name)}
          undo={resume}
          undone={TEXT.resumed(name)}
          changes={SINKS_KEY}
        />
      )}
      <ActionButton
        label={TEXT.remove}
        name={TEXT.removeOf(name)}
        run={() => removeSink(name)}
        done={TEXT.removed(name)}
        changes={SINKS_KEY}
        ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy(name) }}
      />
    </Group>
  )
}
