import { Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMay } from '../session.ts'
import { Count } from '../shared/copyable.tsx'
import { ActionButton } from '../shared/forms/action-button.tsx'
import { BUTTONS, type Column, DataTable } from '../shared/page/data-table.tsx'
import { Panel } from '../shared/page/page.tsx'
import { Time } from '../shared/time.tsx'
import { dropHeld, type HeldContent, heldContentQuery, QUEUE_KEY, releaseHeld } from './delivery-api.ts'
import { HELD_TEXT as TEXT } from './text.ts'

const COLUMNS: Column<HeldContent>[] = [
  {
    header: TEXT.message,
    width: '44%',
    cell: ({ subject, from }) => (
      <div className="lane-name">
        <strong className="breakable">{subject}</strong>
        <div className="dimmed queue-small breakable">{from}</div>
      </div>
    ),
  },
  { header: TEXT.reason, cell: ({ reason }) => <span className="breakable">{reason}</span> },
  { header: TEXT.messages, align: 'end', cell: ({ messages }) => <Count value={messages} /> },
  { header: TEXT.since, wideOnly: true, cell: ({ held_at }) => <Time at={held_at} as="age" /> },
]

/** Only when there is any: mail that the content check keeps. The operator decides on it. */
export function HeldContentPanel() {
  const mayDecide = useMay({ area: 'domains', access: 'write', only: 'first' })
  const { data } = useQuery(heldContentQuery)
  if (data === undefined || data.length === 0) return null
  const buttons: Column<HeldContent> = {
    ...BUTTONS,
    cell: ({ id, subject }) => (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        <ActionButton
          label={TEXT.release}
          name={TEXT.releaseOf(subject)}
          run={() => releaseHeld(id)}
          done={({ messages }) => TEXT.released(messages)}
          changes={QUEUE_KEY}
          ask={{ title: TEXT.releaseOf(subject), consequence: TEXT.releaseConsequence }}
        />
        <ActionButton
          label={TEXT.drop}
          name={TEXT.dropOf(subject)}
          color="red"
          variant="light"
          run={() => dropHeld(id)}
          done={({ messages }) => TEXT.dropped(messages)}
          changes={QUEUE_KEY}
          ask={{ title: TEXT.dropOf(subject), consequence: TEXT.dropConsequence }}
        />
      </Group>
    ),
  }
  return (
    <Panel title={TEXT.title} flush>
      <p className="queue-more dimmed">{mayDecide ? TEXT.lead : TEXT.leadOfOthers}</p>
      <DataTable
        label={TEXT.title}
        columns={mayDecide ? [...COLUMNS, buttons] : COLUMNS}
        rows={data}
        rowKey={({ id }) => id}
        empty={null}
      />
    </Panel>
  )
}
