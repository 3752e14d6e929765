import { ActionIcon } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { Icon } from './icons.tsx'

/** Nothing where the browser has no clipboard for the page (plain http on another host than this one). */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const clipboard = useClipboard()
  if (!window.isSecureContext) return null
  return (
    <ActionIcon
      variant="subtle"
      color={clipboard.copied ? 'petrol' : 'gray'}
      aria-label={clipboard.copied ? 'Copied' : `Copy ${what}`}
      title={clipboard.copied ? 'Copied' : `Copy ${what}`}
      onClick={() => clipboard.copy(text)}
    >
      <Icon name={clipboard.copied ? 'check' : 'copy'} size={16} />
    </ActionIcon>
  )
}
