/** The command palette (Ctrl+K): pages and actions by name. */
import { Modal } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { Icon, type IconName } from '../look/icons.tsx'
import type { Command, Section } from '../section.ts'
import { may, type Session, useSession } from '../session.ts'
import { PALETTE_TEXT as TEXT } from './text.ts'

interface Entry extends Command {
  icon: IconName
  /** Section that it belongs to; '' for the sections themselves. */
  of: string
}

const ENTRIES_MAX = 12 // what fits without scrolling on most screens

/** Everything that the palette offers for a text, best first. */
export function entriesFor(sections: readonly Section[], session: Session, text: string): Entry[] {
  const sought = text.trim()
  const words = sought.toLowerCase().split(/\s+/).filter(Boolean)
  const allowed = (command: Command) => may(session, command.need)
  const fixed = sections.flatMap(({ label, icon, to, pages = [], commands = [] }): Entry[] => [
    { label, icon, href: to, of: '' },
    ...pages.map(
      (page): Entry => ({
        label: page.label,
        icon,
        href: page.to,
        of: label,
        ...(page.need && { need: page.need }),
      }),
    ),
    ...commands.map((command): Entry => ({ ...command, icon, of: label })),
  ])
  const textOf = ({ label, of, words: more = '' }: Entry) => `${label} ${of} ${more}`.toLowerCase()
  const matching = fixed.filter(
    (entry) => allowed(entry) && words.every((word) => textOf(entry).includes(word)),
  )
  const found =
    sought === ''
      ? []
      : sections.flatMap(({ find, icon, label }) =>
          (find?.(sought) ?? []).filter(allowed).map((command): Entry => ({ ...command, icon, of: label })),
        )
  return [...matching, ...found].slice(0, ENTRIES_MAX)
}

export function Palette(props: { opened: boolean; onClose: () => void; sections: readonly Section[] }) {
  const { opened, onClose, sections } = props
  return (
    <Modal.Root opened={opened} onClose={onClose} padding={0} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content radius="lg" aria-label={TEXT.label}>
        <PaletteBox sections={sections} onClose={onClose} />
      </Modal.Content>
    </Modal.Root>
  )
}

/** An input with a list under it; the focus stays in the input (ARIA authoring practices, combobox). */
function PaletteBox({ sections, onClose }: { sections: readonly Section[]; onClose: () => void }) {
  const session = useSession()
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const listId = useId()
  const entries = entriesFor(sections, session, text)
  const chosen = Math.min(at, entries.length - 1)
  const open = (entry: Entry | undefined) => {
    if (entry === undefined) return
    onClose()
    void navigate({ href: entry.href })
  }
  const onKey = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      setAt((chosen + step + entries.length) % Math.max(1, entries.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      open(entries[chosen])
    }
  }
  return (
    <div className="palette">
      <div className="palette-input">
        <Icon name="search" />
        <input
          // biome-ignore lint/a11y/noAutofocus: a window for typing
          autoFocus
          role="combobox"
          aria-expanded={entries.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-label={TEXT.label}
          {...(entries.length > 0 && { 'aria-activedescendant': `${listId}-${chosen}` })}
          placeholder={TEXT.placeholder}
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value)
            setAt(0)
          }}
          onKeyDown={onKey}
        />
      </div>
      <div className="palette-list" role="listbox" id={listId} aria-label={TEXT.results}>
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the input opens the chosen one
          <div
            key={`${entry.of} ${entry.label}`}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === chosen}
            className="palette-entry"
            onMouseMove={() => setAt(index)}
            onClick={() => open(entry)}
          >
            <Icon name={entry.icon} size={16} />
            <span className="grow ellipsis">{entry.label}</span>
            <span className="dimmed">{entry.of}</span>
          </div>
        ))}
      </div>
      {entries.length === 0 && <p className="palette-nothing">{TEXT.nothing}</p>}
      <p className="palette-hint">{TEXT.hint}</p>
    </div>
  )
}
