/** A setting that this browser keeps, for the account of the session. */
import { useState } from 'react'
import { useSession } from '../session.ts'

/** @param read the value of what was stored, which may be anything, and of undefined */
export function useBrowserSetting<Value>(name: string, read: (stored: unknown) => Value) {
  const { account } = useSession()
  const key = `sendwright-${name}-${account.id}`
  const [value, setValue] = useState(() => read(stored(key)))
  const set = (next: Value) => {
    setValue(next)
    try {
      window.localStorage.setItem(key, JSON.stringify(next))
    } catch {
      // Full, or forbidden: it holds until the page is closed.
    }
  }
  return [value, set] as const
}

function stored(key: string): unknown {
  try {
    return JSON.parse(window.localStorage.getItem(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}
