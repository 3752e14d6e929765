import { NativeSelect } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { domainsQuery } from '../queries.ts'
import { TEXT } from './text.ts'

interface DomainChoiceProps {
  /** Empty: none is chosen. */
  value: string
  onChange: (name: string) => void
  /** Label of the empty value; without it one of the domains must be chosen. */
  none?: string
  /** Shown above; default: read by screen readers only. */
  label?: string
}

/** Chooses one of the account's sending domains. A name that is not among those listed is kept. */
export function DomainChoice({ value, onChange, none, label }: DomainChoiceProps) {
  const { data } = useQuery(domainsQuery)
  const names = data?.map(({ name }) => name) ?? []
  const all = value === '' || names.includes(value) ? names : [value, ...names]
  return (
    <NativeSelect
      size="sm"
      {...(label === undefined ? { 'aria-label': TEXT.domain } : { label })}
      value={value}
      data={[
        ...(none === undefined ? [] : [{ value: '', label: none }]),
        ...all.map((name) => ({ value: name, label: name })),
      ]}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** The domain of the page's URL, else the account's first one; '' while the domains are loaded, or if there is none. */
export function useChosenDomain(given: string | undefined): string {
  const { data } = useQuery(domainsQuery)
  return given ?? data?.[0]?.name ?? ''
}
