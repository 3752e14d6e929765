/** The ordered list of relay rules. Each change replaces the list, and can be taken back. */
import { Button, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Icon } from '../../look/icons.tsx'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { DIRECT, RELAYS_KEY, type RelayRule, relaysQuery, rulesQuery, setRules } from './relays-api.ts'
import {
  CONDITIONS,
  levelsOf,
  matchOf,
  moved,
  type RuleFields,
  ruleFields,
  TURNS_MAX,
} from './rule-fields.ts'
import { RULES } from './text.ts'

interface Row {
  /** From 0. */
  at: number
  rule: RelayRule
}

export function RelayRules({ mayChange }: { mayChange: boolean }) {
  const { data, error, refetch } = useQuery(rulesQuery)
  /** The rule in the window; as many as there are: a new one. Null: it is closed. */
  const [edited, setEdited] = useState<number | null>(null)
  const rows = data?.map((rule, at): Row => ({ at, rule }))
  const rules = data ?? []
  const button = mayChange && (
    <Button
      variant="default"
      size="sm"
      leftSection={<Icon name="plus" size={16} />}
      onClick={() => setEdited(rules.length)}
    >
      {RULES.add}
    </Button>
  )
  const columns: Column<Row>[] = [
    { header: RULES.number, cell: ({ at }) => at + 1, width: '4rem' },
    { header: RULES.mail, cell: ({ rule }) => <span className="breakable">{matchWords(rule)}</span> },
    { header: RULES.goes, cell: ({ rule }) => <span className="breakable">{levelWords(rule)}</span> },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: ({ at }: Row) => <RuleButtons rules={rules} at={at} onEdit={() => setEdited(at)} />,
          },
        ]
      : []),
  ]
  return (
    <Panel title={RULES.title} beside={button} flush>
      <p className="dimmed queue-more">{RULES.lead}</p>
      <DataTable
        label={RULES.title}
        columns={columns}
        rows={rows}
        rowKey={({ at }) => String(at)}
        error={error}
        retry={refetch}
        expectedRows={2}
        empty={
          <EmptyState icon="list" title={RULES.none}>
            {RULES.noneWhy}
          </EmptyState>
        }
      />
      {mayChange && edited !== null && (
        <RuleWindow rules={rules} at={edited} onClose={() => setEdited(null)} />
      )}
    </Panel>
  )
}

function matchWords({ match }: RelayRule): string {
  const given = CONDITIONS.flatMap((name) => {
    const value = match[name]
    return value === undefined ? [] : `${RULES.match[name]} ${value}`
  })
  return given.join(', ') || RULES.any
}

const levelWords = ({ levels }: RelayRule): string =>
  levels
    .map((level) =>
      level.map(({ relay, weight = 1 }) => (level.length > 1 ? `${relay} (${weight})` : relay)).join(' + '),
    )
    .join(RULES.otherwise)

function RuleButtons(props: { rules: readonly RelayRule[]; at: number; onEdit: () => void }) {
  const { rules, at, onEdit } = props
  const common = {
    done: RULES.changed,
    undo: () => setRules(rules),
    undone: RULES.restored,
    changes: RELAYS_KEY,
  }
  const place = at + 1
  return (
    <Group gap="xs" justify="flex-end">
      <ActionButton
        {...common}
        label={RULES.up}
        name={RULES.upOf(place)}
        disabled={at === 0}
        run={() => setRules(moved(rules, at, at - 1))}
      />
      <ActionButton
        {...common}
        label={RULES.down}
        name={RULES.downOf(place)}
        disabled={at === rules.length - 1}
        run={() => setRules(moved(rules, at, at + 1))}
      />
      <Button variant="default" size="xs" aria-label={RULES.editOf(place)} onClick={onEdit}>
        {RULES.edit}
      </Button>
      <ActionButton
        {...common}
        label={RULES.remove}
        name={RULES.removeOf(place)}
        run={() => setRules(rules.filter((_, other) => other !== at))}
      />
    </Group>
  )
}

function RuleWindow(props: { rules: readonly RelayRule[]; at: number; onClose: () => void }) {
  const { rules, at, onClose } = props
  const relays = useQuery(relaysQuery)
  const isNew = at >= rules.length
  const names = [...(relays.data ?? []).map(({ name }) => name), DIRECT]
  const form = useForm<RuleFields, unknown>({
    initial: ruleFields(rules[at], names[0] ?? DIRECT),
    send: (fields) => {
      const rule = { match: matchOf(fields), levels: levelsOf(fields) }
      return setRules(isNew ? [...rules, rule] : rules.with(at, rule))
    },
    changes: RELAYS_KEY,
    onDone() {
      notify({ text: RULES.changed })
      onClose()
    },
  })
  const { choices } = form.values
  const setChoice = (index: number, part: Partial<RuleFields['choices'][number]>) =>
    form.set({ choices: choices.map((choice, other) => (other === index ? { ...choice, ...part } : choice)) })
  return (
    <FormWindow
      title={isNew ? RULES.add : RULES.editTitle(at + 1)}
      submit={isNew ? RULES.create : RULES.save}
      isComplete={choices.length > 0}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{RULES.matchWhy}</Text>
      {CONDITIONS.map((name) => (
        <TextInput key={name} label={RULES.match[name]} {...EXACT} {...form.field(name)} />
      ))}
      <Text size="sm">{RULES.choicesWhy}</Text>
      {choices.map(({ relay, weight, turn }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a choice has no other name than its place
        <Group key={index} align="flex-end" gap="xs" wrap="wrap">
          <NativeSelect
            label={RULES.choice(index + 1)}
            data={names.map((name) => ({ value: name, label: name === DIRECT ? RULES.direct : name }))}
            value={relay}
            onChange={(event) => setChoice(index, { relay: event.currentTarget.value })}
            style={{ flex: '1 1 9rem' }}
          />
          <TextInput
            label={RULES.weight(index + 1)}
            inputMode="numeric"
            value={weight}
            onChange={(event) => setChoice(index, { weight: event.currentTarget.value })}
            {...EXACT}
            style={{ flex: '0 1 5rem' }}
          />
          <NativeSelect
            label={RULES.turn(index + 1)}
            data={Array.from({ length: TURNS_MAX }, (_, turnAt) => String(turnAt + 1))}
            value={turn}
            onChange={(event) => setChoice(index, { turn: event.currentTarget.value })}
            style={{ flex: '0 1 5rem' }}
          />
          {choices.length > 1 && (
            <Button
              variant="default"
              size="sm"
              aria-label={RULES.removeChoice(index + 1)}
              onClick={() => form.set({ choices: choices.filter((_, other) => other !== index) })}
            >
              {RULES.remove}
            </Button>
          )}
        </Group>
      ))}
      <Group>
        <Button
          variant="default"
          size="xs"
          onClick={() =>
            form.set({ choices: [...choices, { relay: names[0] ?? DIRECT, weight: '1', turn: '1' }] })
          }
        >
          {RULES.addChoice}
        </Button>
      </Group>
    </FormWindow>
  )
}
