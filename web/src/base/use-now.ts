import { useEffect, useState } from 'react'

const TICK_MS = 30_000

/** The time in Unix milliseconds, updated every half minute: precise enough for ages shown in minutes. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), TICK_MS)
    return () => window.clearInterval(timer)
  }, [])
  return now
}
