/**
 * Keyboard shortcuts. Single keys can be switched off (WCAG 2.2 §2.1.4), and do nothing while the focus is in an input or a
 * window is open.
 */
import { Kbd, Modal, Switch } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useSyncExternalStore } from 'react'
import type { Section } from '../section.ts'
import { SHORTCUT_TEXT as TEXT } from './text.ts'

export const SEQUENCE_MS = 1_500 // from `g` to the letter
const SWITCH_NAME = 'sendwright-single-keys'

const switchListeners = new Set<() => void>()
/** Whether shortcuts of a single key are on. */
export const isOn = () => window.localStorage.getItem(SWITCH_NAME) !== 'off'
function setOn(on: boolean) {
  window.localStorage.setItem(SWITCH_NAME, on ? 'on' : 'off')
  for (const listener of switchListeners) listener()
}
const useSingleKeys = () =>
  useSyncExternalStore((listener) => {
    switchListeners.add(listener)
    return () => switchListeners.delete(listener)
  }, isOn)

export const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))

/** Moves the focus to the next main link of a row of the page, `by` 1 or -1. */
function moveRow(by: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>('#main .row-link')]
  const at = links.indexOf(document.activeElement as HTMLElement)
  const next = at === -1 ? (by === 1 ? 0 : links.length - 1) : at + by
  const link = links[Math.max(0, Math.min(links.length - 1, next))]
  link?.focus()
  link?.scrollIntoView({ block: 'nearest' })
}

/** Listens to the keys of the whole window. */
export function useShortcuts(sections: readonly Section[], openPalette: () => void, openHelp: () => void) {
  const navigate = useNavigate()
  const singleKeys = useSingleKeys()
  useEffect(() => {
    let goAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        openPalette()
        return
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (isTyping(event.target) || document.querySelector('[role="dialog"]') !== null) return
      if (event.key === '?') {
        event.preventDefault()
        openHelp()
        return
      }
      if (!singleKeys) return
      const isGoing = event.timeStamp - goAt < SEQUENCE_MS
      goAt = Number.NEGATIVE_INFINITY
      const section = isGoing ? sections.find(({ letter }) => letter === event.key) : undefined
      if (section) {
        event.preventDefault()
        void navigate({ href: section.to })
        return
      }
      if (event.key === 'g') {
        goAt = event.timeStamp
        return
      }
      const action = BUILT_IN[event.key]
      if (action === undefined) return
      // An input of its own may take the key as well, such as that of the inbox.
      if (event.key === '/' && document.querySelector('[data-search]') === null) return
      event.preventDefault()
      action()
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [sections, openPalette, openHelp, navigate, singleKeys])
}

const BUILT_IN: Readonly<Record<string, () => void>> = {
  '/': () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
}

/** All shortcuts that work here, and the switch for single keys. */
export function ShortcutHelp(props: { opened: boolean; onClose: () => void; sections: readonly Section[] }) {
  const { opened, onClose, sections } = props
  return (
    <Modal opened={opened} onClose={onClose} title={<strong>{TEXT.title}</strong>} centered>
      <HelpSheet sections={sections} />
    </Modal>
  )
}

function HelpSheet({ sections }: { sections: readonly Section[] }) {
  const singleKeys = useSingleKeys()
  return (
    <div className="help-sheet">
      <KeyList title={TEXT.everywhere}>
        {sections.length > 0 && <KeyRow keys={['Ctrl', 'K']} label={TEXT.palette} />}
        <KeyRow keys={['/']} label={TEXT.search} />
        <KeyRow keys={['j']} label={TEXT.nextRow} />
        <KeyRow keys={['k']} label={TEXT.previousRow} />
        <KeyRow keys={['Enter']} label={TEXT.openRow} />
        <KeyRow keys={['?']} label={TEXT.help} />
        <KeyRow keys={['Esc']} label={TEXT.close} />
      </KeyList>
      {sections.some(({ mode }) => mode === 'capture') && (
        <KeyList title={TEXT.inbox}>
          <KeyRow keys={['n']} label={TEXT.nextMessage} />
          <KeyRow keys={['p']} label={TEXT.previousMessage} />
          <KeyRow keys={['u']} label={TEXT.unread} />
          <KeyRow keys={['d']} label={TEXT.deleteMessage} />
        </KeyList>
      )}
      {sections.length > 0 && (
        <KeyList title={TEXT.goTo}>
          {sections.map(({ label, letter }) => (
            <KeyRow key={letter} keys={['g', letter]} label={label} />
          ))}
        </KeyList>
      )}
      <Switch
        mt="md"
        checked={singleKeys}
        onChange={(event) => setOn(event.currentTarget.checked)}
        label={TEXT.single}
        description={TEXT.singleWhy}
      />
    </div>
  )
}

function KeyList({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <>
      <h3>{title}</h3>
      <dl>{children}</dl>
    </>
  )
}

function KeyRow({ keys, label }: { keys: readonly string[]; label: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        {keys.map((key) => (
          <Kbd key={key}>{key}</Kbd>
        ))}
      </dd>
    </div>
  )
}
