import { Button, Group, Skeleton, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { ProgressLine } from '../../shared/page/progress.tsx'
import { Failure } from '../../shared/page/states.tsx'
import {
  LIMIT_MIN,
  LIMITS_KEY,
  type Limit,
  liftStop,
  limitQuery,
  removeLimit,
  setLimit,
} from './limits-api.ts'
import { TEXT } from './text.ts'

/** The monthly limit of the account, or of one of its subaccounts, and how much of it is used. */
export function MonthlyLimit({ subaccountId }: { subaccountId?: string }) {
  const mayChange = useMay({ area: 'message-limits', access: 'write' })
  const { data, error, refetch, isPending } = useQuery(limitQuery(subaccountId))
  const [editing, setEditing] = useState(false)
  return (
    <Panel title={TEXT.monthly}>
      <Text size="sm" c="dimmed" mb="sm">
        {TEXT.monthlyWhy}
      </Text>
      {isPending && <Skeleton height={82} />}
      {error && <Failure title={TEXT.monthly} error={error} retry={refetch} />}
      {data === null && <Text size="sm">{TEXT.none}</Text>}
      {data && <ProgressLine label={TEXT.used} done={data.current} of={data.limit} what="message" />}
      {mayChange && data !== undefined && (
        <Group gap="xs" mt="md">
          <Button variant="default" size="xs" onClick={() => setEditing(true)}>
            {data === null ? TEXT.set : TEXT.change}
          </Button>
          {data && (
            <ActionButton
              label={TEXT.remove}
              run={() => removeLimit(subaccountId)}
              done={TEXT.removed}
              undo={() => setLimit(subaccountId, String(data.limit))}
              undone={TEXT.restored}
              changes={LIMITS_KEY}
            />
          )}
          {subaccountId === undefined && data && data.current >= data.limit && (
            <ActionButton label={TEXT.lift} run={liftStop} done={TEXT.lifted} changes={LIMITS_KEY} />
          )}
        </Group>
      )}
      {editing && data !== undefined && (
        <LimitForm limit={data} subaccountId={subaccountId} onClose={() => setEditing(false)} />
      )}
    </Panel>
  )
}

function LimitForm(props: { limit: Limit | null; subaccountId: string | undefined; onClose: () => void }) {
  const { limit, subaccountId, onClose } = props
  const form = useForm({
    initial: { limit: limit === null ? '' : String(limit.limit) },
    send: (given) => setLimit(subaccountId, given.limit.trim()),
    changes: LIMITS_KEY,
    onDone(_, given) {
      notify({ text: TEXT.saved(Number(given.limit)) })
      onClose()
    },
  })
  const least = subaccountId === undefined ? LIMIT_MIN.own : LIMIT_MIN.subaccount
  return (
    <FormWindow
      title={limit === null ? TEXT.set : TEXT.monthly}
      submit={TEXT.save}
      isComplete={/^\d{1,12}$/.test(form.values.limit.trim())}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.limit}
        description={TEXT.atLeast(least)}
        inputMode="numeric"
        autoComplete="off"
        {...form.field('limit')}
        data-autofocus
      />
    </FormWindow>
  )
}
