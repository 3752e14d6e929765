/** Alerts, their channels, and what was hit. Calls /v1/alerts/settings, /v1/alerts and /v1/thresholds/hits. */
import { Badge } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { Choice } from '../../shared/forms/choice.tsx'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { TEXT as SHARED } from '../text.ts'
import { AlertForm } from './alert-form.tsx'
import {
  ALERTS_KEY,
  type Alert,
  alertsQuery,
  deleteAlert,
  deleteSetting,
  type Hit,
  hitsQuery,
  type Setting,
  saveAlert,
  saveSetting,
  settingsQuery,
  testSetting,
} from './alerts-api.ts'
import { type AlertView, VIEWS } from './alerts-search.ts'
import { ChannelForm } from './channel-form.tsx'
import { percent, TEXT } from './text.ts'
import '../settings.css'

const route = getRouteApi('/settings/alerts')

export default function AlertsPage() {
  const { view = 'hits', add, edit } = route.useSearch()
  const navigate = useNavigate({ from: '/settings/alerts' })
  const mayChange = useMay({ area: 'alerts', access: 'write' })
  const show = (next: AlertView) =>
    void navigate({ replace: true, search: next === 'hits' ? {} : { view: next } })
  const addButton = (to: 'alerts' | 'channels') =>
    mayChange && (
      <AddButton
        label={to === 'alerts' ? TEXT.add : TEXT.addChannel}
        onClick={() => void navigate({ replace: true, search: { view: to, add: 'yes' } })}
      />
    )
  const frame = {
    title: TEXT.title,
    lead: TEXT.lead,
    back: { to: '/settings', label: SHARED.title },
    actions: addButton(view === 'channels' ? 'channels' : 'alerts'),
    above: (
      <div>
        <Choice
          label={TEXT.view}
          options={VIEWS.map((each) => [each, TEXT.views[each]] as const)}
          value={view}
          onChange={show}
        />
      </div>
    ),
  }
  const shown = { frame, mayChange, add: mayChange && add === 'yes', edit: mayChange ? edit : undefined }
  if (view === 'alerts') return <Alerts {...shown} onClose={() => show('alerts')} />
  if (view === 'channels') return <Channels {...shown} onClose={() => show('channels')} />
  return <Hits frame={frame} />
}

interface Frame {
  title: string
  lead: string
  back: { to: string; label: string }
  actions: React.ReactNode
  above: React.ReactNode
}

interface Shown {
  frame: Frame
  mayChange: boolean
  add: boolean
  edit: string | undefined
  onClose: () => void
}

function Hits({ frame }: { frame: Frame }) {
  const list = useQuery(hitsQuery)
  const columns: Column<Hit>[] = [
    {
      header: TEXT.hit,
      cell: ({ name, dimension_value, advice }) => (
        <div>
          <strong className="breakable">{name}</strong>
          {dimension_value && <div className="settings-small breakable">{dimension_value}</div>}
          {advice && <div className="dimmed settings-small breakable">{advice}</div>}
        </div>
      ),
    },
    {
      header: TEXT.state,
      cell: ({ triggered }) => (
        <Badge variant="light" tt="none" fw={550} color={triggered ? 'red' : 'teal'}>
          {triggered ? TEXT.triggered : TEXT.resolved}
        </Badge>
      ),
    },
    {
      header: TEXT.value,
      align: 'end',
      cell: ({ latest_value, metric }) => (metric.endsWith('_rate') ? percent(latest_value) : latest_value),
    },
    { header: TEXT.since, align: 'end', cell: ({ created_at }) => <Time at={created_at} as="age" /> },
  ]
  return (
    <ListPage
      {...frame}
      list={list}
      rows={list.data}
      rowKey={({ id }) => id}
      columns={columns}
      empty={
        <EmptyState icon="check" title={TEXT.noHits}>
          {TEXT.noHitsWhy}
        </EmptyState>
      }
    />
  )
}

function Alerts({ frame, mayChange, add, edit, onClose }: Shown) {
  const list = useQuery(alertsQuery)
  const edited = list.data?.find(({ name }) => name === edit)
  const columns: Column<Alert>[] = [
    {
      header: TEXT.name,
      cell: ({ name, description }) => (
        <div>
          {mayChange ? (
            <Link
              to="/settings/alerts"
              replace
              search={{ view: 'alerts', edit: name }}
              className="row-link breakable"
            >
              {name}
            </Link>
          ) : (
            <strong className="breakable">{name}</strong>
          )}
          {description && <div className="dimmed settings-small breakable">{description}</div>}
        </div>
      ),
    },
    { header: TEXT.when, cell: (alert) => TEXT.sentence(alert) },
    {
      header: TEXT.channels,
      cell: ({ alert_channels }) => alert_channels.map((each) => TEXT.channelNames[each]).join(', '),
    },
    {
      header: TEXT.checked,
      cell: ({ last_checked }) =>
        last_checked === undefined ? TEXT.never : <Time at={last_checked} as="age" />,
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: (alert: Alert) => (
              <ActionButton
                label={TEXT.remove}
                name={TEXT.removeOf(alert.name)}
                run={() => deleteAlert(alert.name)}
                done={TEXT.removed}
                undo={() => saveAlert(undefined, definitionOf(alert))}
                undone={TEXT.restored}
                changes={ALERTS_KEY}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      {...frame}
      list={list}
      rows={list.data}
      rowKey={({ name, subaccount_id }) => `${subaccount_id ?? ''} ${name}`}
      columns={columns}
      empty={
        <EmptyState icon="warning" title={TEXT.noAlerts} action={frame.actions}>
          {TEXT.noAlertsWhy}
        </EmptyState>
      }
    >
      {add && <AlertForm onClose={onClose} />}
      {edited && <AlertForm key={edited.name} alert={edited} onClose={onClose} />}
    </ListPage>
  )
}

/** What its owner decides, to make it anew. */
const definitionOf = (alert: Alert): Partial<Alert> => {
  const { name, description, metric, comparator, limit, dimension, alert_channels, period, filters } = alert
  const { account_group, subaccount_id } = alert
  return {
    ...{ name, description, metric, comparator, limit, dimension, alert_channels, period, filters },
    ...(account_group !== undefined && { account_group }),
    ...(subaccount_id !== undefined && { subaccount_id }),
  }
}

function Channels({ frame, mayChange, add, edit, onClose }: Shown) {
  const list = useQuery(settingsQuery)
  const edited = list.data?.find(({ id }) => id === edit)
  const words = ({ event_type }: Setting) => TEXT.events[event_type] ?? event_type
  const columns: Column<Setting>[] = [
    {
      header: TEXT.event,
      cell: (setting) =>
        mayChange ? (
          <Link
            to="/settings/alerts"
            replace
            search={{ view: 'channels', edit: setting.id }}
            className="row-link"
            title={TEXT.changeOf(words(setting))}
          >
            {words(setting)}
          </Link>
        ) : (
          <strong>{words(setting)}</strong>
        ),
    },
    { header: TEXT.channel, cell: ({ channel }) => TEXT.channelNames[channel] },
    {
      header: TEXT.target,
      cell: ({ settings: { emails, url, channel_ids } }) => (
        <span className="breakable">{emails?.join(', ') ?? url ?? channel_ids?.join(', ')}</span>
      ),
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: (setting: Setting) => (
              <>
                <ActionButton
                  label={TEXT.testChannel}
                  name={TEXT.testChannelOf(words(setting))}
                  run={() => testSetting(setting)}
                  done={TEXT.channelTested}
                  changes={ALERTS_KEY}
                />{' '}
                <ActionButton
                  label={TEXT.removeChannel}
                  name={TEXT.removeChannelOf(words(setting))}
                  run={() => deleteSetting(setting.id)}
                  done={TEXT.channelRemoved}
                  undo={() => saveSetting({ ...setting, id: undefined })}
                  undone={TEXT.channelRestored}
                  changes={ALERTS_KEY}
                />
              </>
            ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      {...frame}
      list={list}
      rows={list.data}
      rowKey={({ id }) => id}
      columns={columns}
      empty={
        <EmptyState icon="send" title={TEXT.noChannels} action={frame.actions}>
          {TEXT.noChannelsWhy}
        </EmptyState>
      }
    >
      {add && <ChannelForm onClose={onClose} />}
      {edited && <ChannelForm key={edited.id} setting={edited} onClose={onClose} />}
    </ListPage>
  )
}
