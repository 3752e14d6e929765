import { useState } from 'react'

/** Earlier contents that can be brought back. */
const STEPS_MAX = 100

export interface ContentHistory {
  /** Changes with the same name one after another are one step; '' is a name of no other. */
  change: (content: string, name: string) => void
  /** Undefined: there is nothing. */
  undo: (() => void) | undefined
  redo: (() => void) | undefined
}

interface Steps {
  past: readonly string[]
  future: readonly string[]
  /** Field of the last change. */
  name: string
}

const NONE: Steps = { past: [], future: [], name: '' }

/** Undo and redo of a text, across all the ways in which it is edited. */
export function useContentHistory(content: string, onChange: (content: string) => void): ContentHistory {
  const [{ past, future, name: last }, setSteps] = useState(NONE)
  const [before, after] = [past.at(-1), future[0]]
  return {
    change(next, name) {
      if (next === content) return
      const isSameStep = name !== '' && name === last && past.length > 0
      setSteps({ past: isSameStep ? past : [...past, content].slice(-STEPS_MAX), future: [], name })
      onChange(next)
    },
    undo:
      before === undefined
        ? undefined
        : () => {
            setSteps({ past: past.slice(0, -1), future: [content, ...future], name: '' })
            onChange(before)
          },
    redo:
      after === undefined
        ? undefined
        : () => {
            setSteps({ past: [...past, content], future: future.slice(1), name: '' })
            onChange(after)
          },
  }
}
