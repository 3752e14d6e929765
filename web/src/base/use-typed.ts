import { useDebouncedCallback } from '@mantine/hooks'
import { useRouter } from '@tanstack/react-router'
import { useState } from 'react'

const TYPING_PAUSE_MS = 250

/**
 * The text of an input whose value is in the page's URL: typed text shows at once, and `apply` gets it,
 * trimmed, when typing pauses, unless another page was opened meanwhile. Returns the text and its setter.
 */
export function useTyped(applied: string, apply: (value: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState(applied)
  const [seen, setSeen] = useState(applied)
  if (applied !== seen) {
    // The URL has changed: by our own typing, by "clear filters", or by the back button.
    setSeen(applied)
    if (applied !== typed.trim()) setTyped(applied)
  }
  const router = useRouter()
  const applyLater = useDebouncedCallback((value: string, typedOn: string) => {
    // This page stays until the code of the next one is loaded; a change of its URL would cancel that.
    if (router.latestLocation.pathname === typedOn) apply(value)
  }, TYPING_PAUSE_MS)
  const change = (text: string) => {
    setTyped(text)
    applyLater(text.trim(), router.latestLocation.pathname)
  }
  return [typed, change]
}
