import { TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Icon } from '../../look/icons.tsx'
import { useAnchored } from '../anchored.ts'
import './chooser.css'
import { CHOOSER_TEXT as TEXT } from '../text.ts'

export interface Option {
  value: string
  label: string
  /** Beside the label: what speaks against this one. */
  note?: string | undefined
}

/** Options that the API finds by a part of their names, a page at a time. */
export interface OptionSource {
  /** Begins the keys of its queries. */
  key: readonly unknown[]
  /** `next`: how many to skip for the next page; undefined at the end. */
  find: (part: string, skip: number, signal: AbortSignal) => Promise<OptionPage>
}

export interface OptionPage {
  options: readonly Option[]
  next?: number | undefined
}

interface ChooserProps {
  label: string
  /** The label stands above the field; otherwise it is read by screen readers only. */
  showLabel?: boolean
  description?: ReactNode
  /** '': none is chosen. */
  value: string
  onChange: (value: string, label: string) => void
  /** All options, or where they are found. */
  options: readonly Option[] | OptionSource
  /** Label of the empty value; without it, nothing is chosen only until something is. */
  none?: string
  /** What is typed is a value, once typing pauses, even if no option has it. */
  free?: boolean
  autoFocus?: boolean
  /** The key `/` goes to it. */
  isSearch?: boolean
}

const TYPING_PAUSE_MS = 200
const HEIGHT_PX = 280 // seven options and a half, so that the list looks as if it went on
const NO_OPTIONS: readonly Option[] = []

/**
 * A field for one of many: typing a part of a name finds it. An editable combobox with a list (ARIA authoring practices):
 * the focus stays in the field; arrows move through the list, Enter chooses, Escape and leaving restore what was chosen.
 */
export function Chooser(props: ChooserProps) {
  const { label, showLabel = false, description, value, onChange, options, none, free = false } = props
  const [typed, setTyped] = useState<string>()
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(0)
  const [named, setNamed] = useState<Option>()
  const listId = useId()
  const field = useRef<HTMLInputElement>(null)
  const part = typed?.trim() ?? ''
  const [sought] = useDebouncedValue(part, TYPING_PAUSE_MS)
  const { found, error, isSettled, more } = useOptions(options, part, sought, isOpen)
  useEffect(() => {
    if (free && typed !== undefined && sought === part && sought !== value) onChange(sought, sought)
  }, [free, typed, sought, part, value, onChange])
  const shown = none !== undefined && part === '' ? [{ value: '', label: none }, ...found] : found
  // What is typed freely is the value, unless somebody moves to an option.
  const isMoved = !free || at >= 0
  const active = isOpen && isMoved ? shown[Math.min(Math.max(at, 0), shown.length - 1)] : undefined
  const nameOf = (sought: string) =>
    [named, ...('key' in options ? found : options)].find((option) => option?.value === sought)?.label ??
    sought

  const open = () => {
    if (isOpen) return
    setOpen(true)
    setAt(free ? -1 : 0)
  }
  const close = () => {
    setOpen(false)
    setTyped(undefined)
  }
  const choose = (option: Option) => {
    setNamed(option)
    close()
    if (option.value !== value) onChange(option.value, option.label)
  }
  const leave = () => {
    if (typed !== undefined && (free || (part === '' && none !== undefined))) {
      if (part !== value) onChange(part, part)
    }
    close()
  }
  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      open()
      if (isOpen && shown.length > 0) setAt((at + step + shown.length) % shown.length)
      if (at + step >= shown.length - 1) more?.()
    } else if (event.key === 'Enter' && isOpen) {
      event.preventDefault()
      if (active) choose(active)
      else leave()
    } else if (event.key === 'Escape' && isOpen) {
      event.stopPropagation()
      close()
    }
  }
  return (
    <div className="chooser">
      <TextInput
        ref={field}
        size="sm"
        {...(showLabel ? { label } : { 'aria-label': label })}
        {...(description !== undefined && { description })}
        inputWrapperOrder={['label', 'input', 'description']}
        role="combobox"
        aria-expanded={isOpen}
        aria-haspopup="listbox"
        aria-autocomplete="list"
        {...(isOpen && { 'aria-controls': listId })}
        {...(active && { 'aria-activedescendant': `${listId}-${shown.indexOf(active)}` })}
        // A window closes on Escape, unless the list does.
        {...(isOpen && { 'data-mantine-stop-propagation': true })}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        placeholder={none ?? TEXT.placeholder}
        value={typed ?? (value === '' ? (none ?? '') : nameOf(value))}
        onChange={(event) => {
          open()
          setTyped(event.currentTarget.value)
          setAt(free ? -1 : 0)
        }}
        onFocus={(event) => event.currentTarget.select()}
        onClick={open}
        onBlur={leave}
        onKeyDown={onKeyDown}
        rightSection={<Icon name="down" size={15} />}
        rightSectionPointerEvents="none"
        {...(props.autoFocus && { 'data-autofocus': true })}
        {...(props.isSearch && { 'data-search': true })}
      />
      {isOpen && (
        <OptionList id={listId} label={label} field={field} onEnd={more}>
          {shown.map((option, index) => (
            <OptionRow
              key={option.value}
              id={`${listId}-${index}`}
              option={option}
              isActive={option === active}
              onPoint={() => setAt(index)}
              onChoose={() => choose(option)}
            />
          ))}
          {shown.length === 0 && isSettled && (
            <div className="chooser-nothing" role="presentation">
              {error?.message ?? TEXT.nothing}
            </div>
          )}
        </OptionList>
      )}
      <span role="status" className="visually-hidden">
        {isOpen && isSettled ? TEXT.found(found.length, more !== undefined) : ''}
      </span>
    </div>
  )
}

/** What is found for a part of a name, and how more of it is asked for; nothing is asked while the list is closed. */
function useOptions(
  options: readonly Option[] | OptionSource,
  part: string,
  sought: string,
  isOpen: boolean,
) {
  const source = 'key' in options ? options : undefined
  const pages = useInfiniteQuery({
    queryKey: [...(source?.key ?? ['chooser']), 'choices', sought],
    queryFn: ({ pageParam, signal }) =>
      source?.find(sought, pageParam, signal) ?? Promise.resolve<OptionPage>({ options: [] }),
    initialPageParam: 0,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    enabled: source !== undefined && isOpen,
  })
  if (!('key' in options)) {
    const lower = part.toLowerCase()
    const found = options.filter(({ label }) => label.toLowerCase().includes(lower))
    return { found, error: null, isSettled: true, more: undefined }
  }
  const isSettled = !pages.isFetching && sought === part
  return {
    found: pages.data?.pages.flatMap((page) => page.options) ?? NO_OPTIONS,
    error: pages.error,
    isSettled,
    more: pages.hasNextPage ? () => void (isSettled && pages.fetchNextPage()) : undefined,
  }
}

function OptionList(props: {
  id: string
  label: string
  field: React.RefObject<HTMLInputElement | null>
  onEnd: (() => void) | undefined
  children: ReactNode
}) {
  const { id, label, field, onEnd, children } = props
  const list = useRef<HTMLDivElement>(null)
  useAnchored(field, list, HEIGHT_PX)
  return (
    <div
      ref={list}
      id={id}
      className="chooser-list"
      popover="manual"
      role="listbox"
      aria-label={label}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        if (scrollTop + clientHeight > scrollHeight - clientHeight) onEnd?.()
      }}
      // The field keeps the focus.
      onMouseDown={(event) => event.preventDefault()}
    >
      {children}
    </div>
  )
}

function OptionRow(props: {
  id: string
  option: Option
  isActive: boolean
  onPoint: () => void
  onChoose: () => void
}) {
  const { id, option, isActive, onPoint, onChoose } = props
  const row = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isActive) row.current?.scrollIntoView({ block: 'nearest' })
  }, [isActive])
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field chooses the active one
    <div
      ref={row}
      id={id}
      role="option"
      aria-selected={isActive}
      className="chooser-option"
      onMouseMove={onPoint}
      onClick={onChoose}
    >
      <bdi className="breakable">{option.label}</bdi>
      {option.note !== undefined && <span className="dimmed">{option.note}</span>}
    </div>
  )
}
