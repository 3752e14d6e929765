/** Makes links that show one figure to a stranger, and revokes them. Calls /sendwright/v1/shared-figures. */
import { Button, Modal, NativeSelect, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Copyable } from '../shared/copyable.tsx'
import { ActionButton } from '../shared/forms/action-button.tsx'
import { FormWindow } from '../shared/forms/form-window.tsx'
import { useForm } from '../shared/forms/use-form.ts'
import { Time } from '../shared/time.tsx'
import { revokeFigure, SHARED_KEY, sharedFiguresQuery, shareFigure } from './statistics-queries.ts'
import { type Span, type StatisticsSearch, shareQuery } from './statistics-search.ts'
import { SHARE_TEXT as TEXT } from './text.ts'

const DAYS = ['1', '7', '30', '90'] as const

export function ShareWindow(props: { span: Span; search: StatisticsSearch; onClose: () => void }) {
  const { span, search, onClose } = props
  const [url, setUrl] = useState<string>()
  const form = useForm({
    initial: { what: 'chart', title: TEXT.titles.chart as string, days: '7' },
    send: ({ what, title, days }) =>
      shareFigure({
        title,
        days: Number(days),
        query: shareQuery(span, search, what === 'table' ? 'table' : 'chart'),
      }),
    changes: SHARED_KEY,
    doneFirst: true,
    onDone: (made) => setUrl(made.url),
  })
  const { what, title } = form.values
  if (url !== undefined)
    return (
      <Modal
        opened
        onClose={onClose}
        title={<strong>{TEXT.made}</strong>}
        centered
        closeOnClickOutside={false}
      >
        <div className="form-window">
          <Text size="sm">{TEXT.madeWhy}</Text>
          <Copyable text={url} what={TEXT.link} />
          <Button onClick={onClose}>{TEXT.done}</Button>
        </div>
      </Modal>
    )
  return (
    <FormWindow
      title={TEXT.title}
      submit={TEXT.make}
      isComplete={title.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.why}</Text>
      <NativeSelect
        label={TEXT.what}
        value={what}
        data={[
          { value: 'chart', label: TEXT.chart },
          // Names of subaccounts are shown to nobody else.
          ...(search.by === 'subaccount' ? [] : [{ value: 'table', label: TEXT.table }]),
        ]}
        onChange={(event) => {
          const chosen = event.currentTarget.value === 'table' ? 'table' : 'chart'
          form.set({ what: chosen, title: TEXT.titles[chosen] })
        }}
        data-autofocus
      />
      <TextInput label={TEXT.heading} maxLength={100} autoComplete="off" {...form.field('title')} />
      <NativeSelect
        label={TEXT.valid}
        data={DAYS.map((days) => ({ value: days, label: TEXT.days(Number(days)) }))}
        {...form.field('days')}
      />
      <Links />
    </FormWindow>
  )
}

function Links() {
  const { data } = useQuery(sharedFiguresQuery)
  if (data === undefined || data.length === 0) return null
  return (
    <section aria-label={TEXT.links}>
      <strong>{TEXT.links}</strong>
      <ul className="shared-links">
        {data.map(({ id, title, expires_at }) => (
          <li key={id}>
            <span>
              <bdi className="breakable">{title}</bdi>{' '}
              <span className="dimmed">
                {TEXT.until} <Time at={expires_at} as="date" />
              </span>
            </span>
            <ActionButton
              label={TEXT.revoke}
              name={TEXT.revokeOf(title)}
              run={() => revokeFigure(id)}
              done={TEXT.revoked}
              changes={SHARED_KEY}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}
