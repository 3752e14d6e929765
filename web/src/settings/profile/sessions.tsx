/** Browsers in which the own user is signed in. */
import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { Time } from '../../shared/time.tsx'
import {
  endOtherSessions,
  endSession,
  type OwnSession,
  ownSessionsQuery,
  PROFILE_KEY,
} from './profile-api.ts'
import { TEXT } from './text.ts'

export function OwnSessions() {
  const list = useQuery(ownSessionsQuery)
  const columns: Column<OwnSession>[] = [
    {
      header: TEXT.browser,
      cell: ({ user_agent, current }) => (
        <span className="breakable" title={user_agent}>
          {browserOf(user_agent)} {current && <span className="tag">{TEXT.thisOne}</span>}
        </span>
      ),
    },
    { header: TEXT.address, cell: ({ remote_address }) => remote_address },
    { header: TEXT.begun, cell: ({ created_at }) => <Time at={created_at} /> },
    { header: TEXT.lastUsed, cell: ({ last_used_at }) => <Time at={last_used_at} as="age" /> },
    {
      ...BUTTONS,
      cell: ({ id, current, user_agent }) =>
        !current && (
          <ActionButton
            label={TEXT.end}
            name={TEXT.endOf(browserOf(user_agent))}
            run={() => endSession(id)}
            done={TEXT.ended}
            changes={PROFILE_KEY}
          />
        ),
    },
  ]
  return (
    <Panel
      title={TEXT.sessions}
      beside={
        (list.data?.length ?? 0) > 1 && (
          <ActionButton
            label={TEXT.endOthers}
            size="sm"
            run={endOtherSessions}
            done={TEXT.othersEnded}
            changes={PROFILE_KEY}
            ask={{ title: TEXT.endOthers, consequence: TEXT.endOthersWhy }}
          />
        )
      }
    >
      <Text size="sm" mb="sm">
        {TEXT.sessionsWhy}
      </Text>
      <DataTable
        label={TEXT.sessions}
        columns={columns}
        rows={list.data}
        rowKey={({ id }) => id}
        error={list.error}
        retry={list.refetch}
        expectedRows={1}
        empty={null}
      />
    </Panel>
  )
}

/** In the order in which browsers name each other; the first that matches. */
const BROWSERS = [
  ['Firefox', /Firefox\//],
  ['Edge', /Edg\//],
  ['Opera', /OPR\//],
  ['Chrome', /Chrom(?:e|ium)\//],
  ['Safari', /Safari\//],
] as const
const SYSTEMS = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
] as const

/** "Firefox, Linux", or the whole User-Agent of another program. */
function browserOf(userAgent: string): string {
  const named = (list: typeof BROWSERS | typeof SYSTEMS) =>
    list.find(([, pattern]) => pattern.test(userAgent))?.[0]
  return [named(BROWSERS), named(SYSTEMS)].filter((name) => name !== undefined).join(', ') || userAgent || '–'
}
