import { Button, Group, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { spanWords } from '../text.ts'
import { RATES_KEY, type RateLimit, rateLimitsQuery, resetRateLimit, setRateLimit } from './limits-api.ts'
import { TEXT } from './text.ts'

const KINDS = 6 // names of rate limits

/** Rate limits of an account, which the operator sets. */
export function RateLimits({ accountId }: { accountId: string }) {
  const { data, error, refetch } = useQuery(rateLimitsQuery(accountId))
  const [edited, setEdited] = useState<RateLimit>()
  return (
    <Panel title={TEXT.rates} flush>
      <Text size="sm" c="dimmed" px="md" py="xs">
        {TEXT.ratesWhy}
      </Text>
      <DataTable
        label={TEXT.rates}
        rows={data}
        rowKey={({ name }) => name}
        error={error}
        retry={refetch}
        expectedRows={KINDS}
        empty={null}
        columns={[
          {
            header: TEXT.rate,
            cell: ({ name }) => <strong className="breakable">{TEXT.names[name] ?? name}</strong>,
          },
          {
            header: TEXT.allowed,
            cell: ({ count, window_seconds, is_default }) => (
              <span>
                {TEXT.per(count, spanWords(window_seconds))}{' '}
                {is_default && <span className="dimmed">({TEXT.general})</span>}
              </span>
            ),
          },
          {
            ...BUTTONS,
            cell: (limit) => {
              const name = TEXT.names[limit.name] ?? limit.name
              return (
                <Group gap="xs" justify="flex-end">
                  <Button
                    variant="default"
                    size="xs"
                    aria-label={TEXT.changeOf(name)}
                    onClick={() => setEdited(limit)}
                  >
                    {TEXT.change}
                  </Button>
                  {!limit.is_default && (
                    <ActionButton
                      label={TEXT.reset}
                      name={TEXT.resetOf(name)}
                      run={() => resetRateLimit(accountId, limit.name)}
                      done={TEXT.rateReset}
                      undo={() => setRateLimit(accountId, limit.name, String(limit.count))}
                      undone={TEXT.rateSaved}
                      changes={RATES_KEY}
                    />
                  )}
                </Group>
              )
            },
          },
        ]}
      />
      {edited && <RateForm accountId={accountId} limit={edited} onClose={() => setEdited(undefined)} />}
    </Panel>
  )
}

function RateForm(props: { accountId: string; limit: RateLimit; onClose: () => void }) {
  const { accountId, limit, onClose } = props
  const form = useForm({
    initial: { count: String(limit.count) },
    send: ({ count }) => setRateLimit(accountId, limit.name, count.trim()),
    changes: RATES_KEY,
    onDone() {
      notify({ text: TEXT.rateSaved })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.names[limit.name] ?? limit.name}
      submit={TEXT.save}
      isComplete={/^\d{1,12}$/.test(form.values.count.trim())}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.count(spanWords(limit.window_seconds))}
        description={TEXT.ratesWhy}
        inputMode="numeric"
        autoComplete="off"
        {...form.field('count')}
        data-autofocus
      />
    </FormWindow>
  )
}
