/** Values that a click copies. */
import type { ReactNode } from 'react'
import { copyText } from '../base/clipboard.ts'
import { CopyButton } from '../base/copy-button.tsx'
import { notify } from './page/notices.tsx'
import { TEXT } from './text.ts'

/** A count with thousands separators; a click copies the bare digits. */
export function Count({ value, children }: { value: number; children?: ReactNode }) {
  const copy = async () => {
    const isCopied = await copyText(String(value))
    notify({ text: isCopied ? TEXT.copied(String(value)) : TEXT.cannotCopy, tone: isCopied ? 'ok' : 'bad' })
  }
  return (
    <button
      type="button"
      className="count"
      title={TEXT.copyNumber(String(value))}
      onClick={() => void copy()}
    >
      {children ?? value.toLocaleString('en')}
    </button>
  )
}

/** A technical text in full, with a button that copies it; `what` completes "Copy ...". */
export function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <span className="copyable">
      <code className="breakable">{text}</code>
      <CopyButton text={text} what={what} />
    </span>
  )
}
