/** Filters above a table. Their values live in the address of the page. */
import { Button, CloseButton, NativeSelect, TextInput } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTyped } from '../../base/use-typed.ts'
import { Icon } from '../../look/icons.tsx'
import { Chooser, type Option, type OptionSource } from '../forms/chooser.tsx'
import { TEXT } from '../text.ts'

export type FilterField<Name extends string = string> =
  | { name: Name; kind: 'search' | 'text'; label: string; placeholder?: string }
  | {
      name: Name
      kind: 'choice'
      label: string
      /** Value and label; the empty value (no filter) is added. */
      options: readonly (readonly [value: string, label: string])[]
      /** Label of the empty value. */
      any?: string
    }
  | {
      name: Name
      /** One of many, found by a part of its name. */
      kind: 'chooser'
      label: string
      options: readonly Option[] | OptionSource
      any: string
      free?: boolean
    }

interface FilterBarProps<Name extends string> {
  fields: readonly FilterField<Name>[]
  /** Values in the page's URL. */
  values: Readonly<Partial<Record<Name, string | undefined>>>
  /** Sets one value in the URL; undefined removes it. */
  onChange: (name: Name, value: string | undefined) => void
  /** Removes all. */
  onClear: () => void
  /** Further controls at the end. */
  children?: ReactNode
}

/** Filters of a list, each a search parameter of the page's URL. `/` puts the cursor into the first field of kind `search`. */
export function FilterBar<Name extends string>(props: FilterBarProps<Name>) {
  const { fields, values, onChange, onClear, children } = props
  const isFiltered = fields.some(({ name }) => (values[name] ?? '') !== '')
  return (
    <search className="filter-bar">
      {fields.map((field) =>
        field.kind === 'chooser' ? (
          <Chooser
            key={field.name}
            label={field.label}
            none={field.any}
            options={field.options}
            free={field.free ?? false}
            value={values[field.name] ?? ''}
            onChange={(value) => onChange(field.name, value || undefined)}
          />
        ) : field.kind === 'choice' ? (
          <NativeSelect
            key={field.name}
            size="sm"
            aria-label={field.label}
            value={values[field.name] ?? ''}
            data={[
              { value: '', label: field.any ?? `${field.label}: ${TEXT.any.toLowerCase()}` },
              ...field.options.map(([value, label]) => ({ value, label })),
            ]}
            onChange={(event) => onChange(field.name, event.currentTarget.value || undefined)}
          />
        ) : (
          <TextFilter
            key={field.name}
            field={field}
            applied={values[field.name] ?? ''}
            apply={(value) => onChange(field.name, value || undefined)}
          />
        ),
      )}
      {isFiltered && (
        <Button variant="subtle" size="sm" onClick={onClear}>
          {TEXT.clearFilters}
        </Button>
      )}
      {children}
    </search>
  )
}

function TextFilter(props: {
  field: { kind: 'search' | 'text'; label: string; placeholder?: string }
  applied: string
  apply: (value: string) => void
}) {
  const { field, applied, apply } = props
  const [typed, change] = useTyped(applied, apply)
  const isSearch = field.kind === 'search'
  return (
    <TextInput
      size="sm"
      className={isSearch ? 'filter-search' : 'filter-text'}
      aria-label={field.label}
      placeholder={field.placeholder ?? field.label}
      autoComplete="off"
      autoCapitalize="none"
      spellCheck={false}
      value={typed}
      onChange={(event) => change(event.currentTarget.value)}
      {...(isSearch && { 'data-search': true, leftSection: <Icon name="search" size={16} /> })}
      rightSection={
        typed !== '' && (
          <CloseButton size="sm" aria-label={`Clear ${field.label}`} onClick={() => change('')} />
        )
      }
    />
  )
}
