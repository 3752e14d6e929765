/** Relays, the rules that choose among them, and the reports of SES. Calls /sendwright/v1/relays, relay-rules and sns/topics. */
import { Badge, Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { Count } from '../../shared/copyable.tsx'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { type Lane, lanesQuery } from '../delivery-api.ts'
import { TEXT as SECTION } from '../text.ts'
import { RelayWindow } from './relay-form.tsx'
import { RelayRules } from './relay-rules.tsx'
import { PauseButton, PauseWindow, RelayState } from './relay-state.tsx'
import { TestWindow } from './relay-test.tsx'
import { RELAYS_KEY, type Relay, relaysQuery, removeRelay } from './relays-api.ts'
import { SnsTopics } from './sns-topics.tsx'
import { TEXT, TRIAL } from './text.ts'
import '../delivery.css'

const route = getRouteApi('/delivery/relays')

/** Which windows open and close. */
type Changes = { add?: 'yes' | undefined } & { [Name in 'edit' | 'pause' | 'test']?: string | undefined }

export default function RelaysPage() {
  const { add, edit, pause, test } = route.useSearch()
  const navigate = useNavigate({ from: '/delivery/relays' })
  const mayChange = useMay({ area: 'account', access: 'write', only: 'first' })
  const list = useQuery(relaysQuery)
  const lanes = useQuery(lanesQuery)
  const change = (changes: Changes) =>
    void navigate({ replace: true, search: (old) => withSearch(old, changes) })
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => change({ add: 'yes' })} />
  const named = (name: string | undefined) => list.data?.find((relay) => relay.name === name)
  const [edited, paused, tested] = [named(edit), named(pause), named(test)]
  const columns: Column<Relay>[] = [
    { header: TEXT.relay, cell: (relay) => <RelayName relay={relay} /> },
    { header: TEXT.state, cell: (relay) => <RelayState relay={relay} /> },
    { header: TEXT.login, cell: ({ login }) => <LoginState login={login} /> },
    { header: TEXT.limits, cell: (relay) => <Limits relay={relay} /> },
    {
      header: TEXT.waiting,
      align: 'end',
      cell: (relay) => <Waiting lanes={lanes.data} relay={relay} of={({ queued }) => queued} />,
    },
    {
      header: TEXT.due,
      align: 'end',
      wideOnly: true,
      cell: (relay) => <Waiting lanes={lanes.data} relay={relay} of={({ due }) => due} />,
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: (relay: Relay) => <RelayButtons relay={relay} change={change} />,
          },
        ]
      : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/delivery', label: SECTION.title }}
      actions={button}
      list={list}
      rows={list.data}
      rowKey={({ name }) => name}
      columns={columns}
      expectedRows={3}
      empty={
        <EmptyState icon="truck" title={TEXT.none} action={button}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
      {/* Once the table above has its height: the panels must not jump. */}
      {list.data && <RelayRules mayChange={mayChange} />}
      {list.data && <SnsTopics mayChange={mayChange} />}
      {mayChange && add === 'yes' && <RelayWindow relay={null} onClose={() => change({ add: undefined })} />}
      {mayChange && edited?.from_setting === false && (
        <RelayWindow key={edited.name} relay={edited} onClose={() => change({ edit: undefined })} />
      )}
      {mayChange && paused && <PauseWindow name={paused.name} onClose={() => change({ pause: undefined })} />}
      {mayChange && tested && <TestWindow name={tested.name} onClose={() => change({ test: undefined })} />}
    </ListPage>
  )
}

function RelayName({ relay }: { relay: Relay }) {
  const { name, host, port, tls, allow_unverified, from_setting } = relay
  const how = [TEXT.tlsWords[tls], ...(allow_unverified ? [TEXT.unverified] : [])].join(', ')
  return (
    <div>
      <strong className="breakable">{name}</strong>
      <div className="dimmed queue-small breakable">{`${TEXT.server(host, port)}, ${how}`}</div>
      {from_setting && <div className="dimmed queue-small">{TEXT.fromSetting}</div>}
    </div>
  )
}

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

function LoginState({ login }: { login: Relay['login'] }) {
  if (login === null) return TEXT.noLogin
  const { username, has_password, oauth } = login
  return (
    <div>
      <span className="breakable">{username}</span>
      {oauth === null ? (
        <div className="dimmed queue-small">{has_password ? TEXT.password : TEXT.noPassword}</div>
      ) : oauth.error !== null ? (
        <div>
          <Badge {...LOOK} color="red">
            {TEXT.tokenFailed}
          </Badge>
          <div className="dimmed queue-small breakable">{oauth.error}</div>
        </div>
      ) : (
        <div className="dimmed queue-small">
          {oauth.expires_at === null ? (
            TEXT.noTokenYet
          ) : (
            <>
              {TEXT.tokens} {TEXT.tokenUntil} <Time at={oauth.expires_at} />
            </>
          )}
        </div>
      )}
    </div>
  )
}

function limitWords(limits: Relay['limits']): string {
  const words = Object.entries(TEXT.limitWords).flatMap(([name, say]) => {
    const limit = limits[name as keyof typeof limits]
    return limit === null ? [] : say(limit)
  })
  return words.join(', ') || TEXT.noLimits
}

function Limits({ relay: { limits, used_today } }: { relay: Relay }) {
  return (
    <div>
      {limitWords(limits)}
      {used_today !== null && <div className="dimmed queue-small">{TEXT.usedToday(used_today)}</div>}
    </div>
  )
}

/** What the lanes of the relay hold; the one of the setting has a site without a name. */
function Waiting(props: { lanes: readonly Lane[] | undefined; relay: Relay; of: (lane: Lane) => number }) {
  const { lanes, relay, of } = props
  if (lanes === undefined) return '–'
  const sites = [`relay:${relay.name}`, ...(relay.from_setting ? ['relay'] : [])]
  const sum = lanes.reduce((total, lane) => total + (sites.includes(lane.site) ? of(lane) : 0), 0)
  return <Count value={sum} />
}

function RelayButtons({ relay, change }: { relay: Relay; change: (changes: Changes) => void }) {
  const { name } = relay
  return (
    <Group gap="xs" justify="flex-end">
      <Button
        variant="default"
        size="xs"
        aria-label={TRIAL.testOf(name)}
        onClick={() => change({ test: name })}
      >
        {TRIAL.test}
      </Button>
      <PauseButton relay={relay} onPause={() => change({ pause: name })} />
      {!relay.from_setting && <StoredButtons name={name} onEdit={() => change({ edit: name })} />}
    </Group>
  )
}

/** One that is in the setting is changed there. */
function StoredButtons({ name, onEdit }: { name: string; onEdit: () => void }) {
  return (
    <>
      <Button variant="default" size="xs" aria-label={TEXT.editOf(name)} onClick={onEdit}>
        {TEXT.edit}
      </Button>
      <ActionButton
        label={TEXT.remove}
        name={TEXT.removeOf(name)}
        run={() => removeRelay(name)}
        done={TEXT.removed(name)}
        changes={RELAYS_KEY}
        ask={{ title: TEXT.removeTitle(name), consequence: TEXT.removeWhy }}
      />
    </>
  )
}
