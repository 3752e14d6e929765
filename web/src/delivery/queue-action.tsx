import { Button, Group, Modal, NativeSelect, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTyped } from '../base/use-typed.ts'
import { useMay } from '../session.ts'
import { Chooser } from '../shared/forms/chooser.tsx'
import { useSending } from '../shared/forms/use-sending.ts'
import { notify } from '../shared/page/notices.tsx'
import { Failure } from '../shared/page/states.tsx'
import {
  ACTIONS,
  countAction,
  countQuery,
  FILTERS,
  type FilterName,
  type Order,
  poolsQuery,
  QUEUE_KEY,
  type QueueAction,
  runAction,
} from './delivery-api.ts'
import { type DeliverySearch, filterOf } from './delivery-search.ts'
import { filterWords, ACTION_TEXT as TEXT } from './text.ts'

interface WindowProps {
  search: DeliverySearch & { act: QueueAction }
  /** What is chosen, for the URL. */
  onChange: (search: DeliverySearch) => void
  onClose: () => void
}

/** Asks what to do with which mail, and says how much it is before anything is done. */
export function QueueActionWindow(props: WindowProps) {
  return (
    <Modal opened onClose={props.onClose} title={<strong>{TEXT.title}</strong>} centered size="lg">
      <ActionForm {...props} />
    </Modal>
  )
}

function ActionForm({ search, onChange, onClose }: WindowProps) {
  const { act: action, pool } = search
  const filter = filterOf(search)
  const order: Order = { action, filter, ...(action === 'move' && pool !== undefined && { pool }) }
  const count = useQuery(countQuery(order))
  const [typed, setTyped] = useState('')
  const queries = useQueryClient()
  const refresh = () => void queries.invalidateQueries({ queryKey: [QUEUE_KEY] })
  const run = useSending({
    async mutationFn() {
      // A resume with the same filter takes a pause back only if nothing that matches was paused before.
      const isExact = action === 'pause' && (await countAction({ action: 'resume', filter })) === 0
      return { ...(await runAction(order)), isExact }
    },
    onSuccess({ changed, isExact }) {
      refresh()
      onClose()
      const undo = async () => {
        const result = await runAction({ action: 'resume', filter }).catch((error: Error) => error)
        if (result instanceof Error) notify({ text: result.message, tone: 'bad' })
        else notify({ text: TEXT.done.resume(result.changed) })
        refresh()
      }
      notify({ text: TEXT.done[action](changed), ...(isExact && changed > 0 && { undo: () => void undo() }) })
    },
  })
  const change = (next: DeliverySearch) => {
    run.reset()
    setTyped('')
    onChange(next)
  }
  const phrase = TEXT.typeToDrop(count.data ?? 0)
  const isMeant = action !== 'drop' || typed.trim() === phrase
  const isReady = (count.data ?? 0) > 0 && !count.isFetching && isMeant
  return (
    <form
      className="queue-action"
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady && !run.isPending) run.mutate()
      }}
    >
      <fieldset className="queue-choices">
        <legend>{TEXT.what}</legend>
        {ACTIONS.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="action"
              value={each}
              checked={each === action}
              onChange={() => change({ ...search, act: each })}
              {...(each === action && { 'data-autofocus': true })}
            />
            <span>
              <strong>{TEXT.labels[each]}</strong> <span className="dimmed">{TEXT.meanings[each]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {action === 'move' && (
        <PoolChoice value={pool} onChange={(next) => change({ ...search, pool: next })} />
      )}
      <FilterFields
        search={search}
        onChange={(name, value) => {
          const { [name]: _, ...rest } = search
          change(value === '' ? rest : { ...rest, [name]: value })
        }}
      />
      <div className="queue-count" role="status">
        <CountWords order={order} count={count.isFetching ? undefined : count.data} />
        <div className="dimmed queue-small">{TEXT.later}</div>
      </div>
      {action === 'drop' && (count.data ?? 0) > 0 && (
        <TextInput
          label={
            <>
              {TEXT.type} <strong>{phrase}</strong> {TEXT.typeLabel}
            </>
          }
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      {(count.error ?? run.error) && (
        <Text size="sm" c="red" role="alert" className="breakable">
          {(count.error ?? run.error)?.message}
        </Text>
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button
          type="submit"
          {...(action === 'drop' && { color: 'red' })}
          loading={run.isPending}
          disabled={!isReady}
        >
          {TEXT.button(action, count.data)}
        </Button>
      </Group>
    </form>
  )
}

function CountWords({ order, count }: { order: Order; count: number | undefined }) {
  const { action, filter, pool } = order
  if (Object.keys(filter).length === 0) return TEXT.needsFilter
  if (action === 'move' && pool === undefined) return TEXT.needsPool
  if (count === undefined) return TEXT.counting
  return (
    <strong>{count === 0 ? TEXT.none[action] : TEXT.sentence[action](count, filterWords(filter))}</strong>
  )
}

function PoolChoice({ value, onChange }: { value: string | undefined; onChange: (pool: string) => void }) {
  const mayRead = useMay({ area: 'ips' })
  const pools = useQuery({ ...poolsQuery, enabled: mayRead })
  return (
    <>
      <Chooser
        label={TEXT.pool}
        showLabel
        value={value ?? ''}
        options={[
          { value: 'shared', label: TEXT.sharedPool },
          ...(pools.data ?? []).map(({ pool_id, name }) => ({ value: pool_id, label: name })),
        ]}
        onChange={onChange}
      />
      {pools.error && <Failure title={TEXT.pool} error={pools.error} retry={pools.refetch} />}
    </>
  )
}

/** The fields that the window was opened with first; the others narrow down and can be unfolded. */
function FilterFields(props: {
  search: DeliverySearch
  onChange: (name: FilterName, value: string) => void
}) {
  const { search, onChange } = props
  const [given] = useState(() => FILTERS.filter((name) => search[name] !== undefined))
  const [first, others] =
    given.length > 0 ? [given, FILTERS.filter((name) => !given.includes(name))] : [FILTERS, []]
  const field = (name: FilterName) => (
    <FilterInput
      key={name}
      name={name}
      applied={search[name] ?? ''}
      apply={(value) => onChange(name, value)}
    />
  )
  return (
    <fieldset className="queue-filters">
      <legend>{TEXT.which}</legend>
      <div className="queue-fields">{first.map(field)}</div>
      {others.length > 0 && (
        <details>
          <summary>{TEXT.narrow}</summary>
          <div className="queue-fields">{others.map(field)}</div>
        </details>
      )}
    </fieldset>
  )
}

function FilterInput(props: { name: FilterName; applied: string; apply: (value: string) => void }) {
  const { name, applied, apply } = props
  const [typed, change] = useTyped(applied, apply)
  if (name === 'older_than')
    return (
      <NativeSelect
        label={TEXT.filters[name]}
        value={applied}
        data={[
          ...TEXT.ages.map(([value, label]) => ({ value, label })),
          ...(TEXT.ages.some(([value]) => value === applied) ? [] : [{ value: applied, label: applied }]),
        ]}
        onChange={(event) => apply(event.currentTarget.value)}
      />
    )
  return (
    <TextInput
      label={TEXT.filters[name]}
      placeholder={TEXT.placeholders[name]}
      autoComplete="off"
      autoCapitalize="none"
      spellCheck={false}
      value={typed}
      onChange={(event) => change(event.currentTarget.value)}
    />
  )
}
