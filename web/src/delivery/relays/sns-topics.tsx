/** Topics of SNS that report what became of mail through Amazon SES. Calls /sendwright/v1/sns/topics. */
import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Icon } from '../../look/icons.tsx'
import { Copyable } from '../../shared/copyable.tsx'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { addTopic, RELAYS_KEY, removeTopic, type SnsTopic, topicsQuery } from './relays-api.ts'
import { TOPICS as TEXT } from './text.ts'

export function SnsTopics({ mayChange }: { mayChange: boolean }) {
  const { data, error, refetch } = useQuery(topicsQuery)
  const [isAdding, setAdding] = useState(false)
  const button = mayChange && (
    <Button
      variant="default"
      size="sm"
      leftSection={<Icon name="plus" size={16} />}
      onClick={() => setAdding(true)}
    >
      {TEXT.add}
    </Button>
  )
  const columns: Column<SnsTopic>[] = [
    { header: TEXT.topic, cell: ({ arn }) => <span className="breakable">{arn}</span> },
    {
      header: TEXT.endpoint,
      cell: ({ arn, endpoint }) => <Copyable text={endpoint} what={TEXT.endpointOf(arn)} />,
    },
    {
      header: TEXT.confirmed,
      cell: ({ confirmed_at }) => (confirmed_at === null ? TEXT.notYet : <Time at={confirmed_at} />),
    },
    ...(mayChange ? [{ ...BUTTONS, cell: ({ arn }: SnsTopic) => <RemoveTopic arn={arn} /> }] : []),
  ]
  return (
    <Panel title={TEXT.title} beside={button} flush>
      <p className="dimmed queue-more">{TEXT.lead}</p>
      <DataTable
        label={TEXT.title}
        columns={columns}
        rows={data}
        rowKey={({ arn }) => arn}
        error={error}
        retry={refetch}
        expectedRows={1}
        empty={
          <EmptyState icon="hook" title={TEXT.none}>
            {TEXT.noneWhy}
          </EmptyState>
        }
      />
      {isAdding && <TopicWindow onClose={() => setAdding(false)} />}
    </Panel>
  )
}

const RemoveTopic = ({ arn }: { arn: string }) => (
  <ActionButton
    label={TEXT.remove}
    name={TEXT.removeOf(arn)}
    run={() => removeTopic(arn)}
    done={TEXT.removed}
    changes={RELAYS_KEY}
    ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy }}
  />
)

function TopicWindow({ onClose }: { onClose: () => void }) {
  const form = useForm({
    initial: { arn: '' },
    send: ({ arn }) => addTopic(arn.trim()),
    changes: RELAYS_KEY,
    onDone() {
      notify({ text: TEXT.added })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.create}
      isComplete={form.values.arn.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput label={TEXT.arn} {...EXACT} {...form.field('arn')} data-autofocus />
    </FormWindow>
  )
}
