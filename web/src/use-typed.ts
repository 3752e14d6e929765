import { useDebouncedCallback } from '@mantine/hooks'
import { useState } from 'react'

const TYPING_PAUSE_MS = 250

/**
 * The text of an input whose value is in the page's URL: typed text shows at once, and `apply` gets it,
 * trimmed, when typing pauses. Returns the text and its setter.
 */
export function useTyped(applied: string, apply: (value: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState(applied)
  const [seen, setSeen] = useState(applied)
  if (applied !== seen) {
    // The URL has changed: by our own typing, by "clear filters", or by the back button.
    setSeen(applied)
    if (applied !== typed.trim()) setTyped(applied)
  }
  const applyLater = useDebouncedCallback(apply, TYPING_PAUSE_MS)
  const change = (text: string) => {
    setTyped(text)
    applyLater(text.trim())
  }
  return [typed, change]
}
