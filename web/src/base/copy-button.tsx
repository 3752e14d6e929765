import { ActionIcon, Button } from '@mantine/core'
import { useState } from 'react'
import { Icon, type IconName } from '../look/icons.tsx'
import { copyText } from './clipboard.ts'

const SHOWN_MS = 1_500 // long enough to be noticed, short enough not to look permanent

type CopyState = 'idle' | 'copied' | 'failed'
const ICONS: Record<CopyState, IconName> = { idle: 'copy', copied: 'check', failed: 'cross' }
const COLORS: Record<CopyState, string> = { idle: 'gray', copied: 'petrol', failed: 'red' }

function useCopy(text: string) {
  const [state, setState] = useState<CopyState>('idle')
  const copy = async () => {
    setState((await copyText(text)) ? 'copied' : 'failed')
    window.setTimeout(() => setState('idle'), SHOWN_MS)
  }
  return { state, copy }
}

/** `what` completes "Copy ...". */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const { state, copy } = useCopy(text)
  const label = { idle: `Copy ${what}`, copied: 'Copied', failed: 'Cannot copy: select it' }[state]
  return (
    <ActionIcon
      variant="subtle"
      color={COLORS[state]}
      aria-label={label}
      title={label}
      onClick={() => void copy()}
    >
      <Icon name={ICONS[state]} size={16} />
    </ActionIcon>
  )
}

/** Like `CopyButton`, with a label; disabled while there is nothing to copy. */
export function CopyWordsButton({ text, words }: { text: string | undefined; words: string }) {
  const { state, copy } = useCopy(text ?? '')
  return (
    <Button
      variant="default"
      size="sm"
      disabled={text === undefined}
      leftSection={<Icon name={ICONS[state]} size={16} />}
      onClick={() => void copy()}
    >
      {{ idle: words, copied: 'Copied', failed: 'Cannot copy' }[state]}
    </Button>
  )
}
