import { useEffect, useState } from 'react'

const TICK_MS = 250 // no second is skipped or shown twice as long

/** Whole seconds left of a wait that begins when `start` changes; 0 without a wait and at its end. */
export function useSecondsLeft(start: object | null, seconds: number): number {
  const [left, setLeft] = useState(0)
  useEffect(() => {
    const end = start === null ? 0 : Date.now() + seconds * 1000
    const update = () => {
      const rest = Math.max(0, Math.ceil((end - Date.now()) / 1000))
      setLeft(rest)
      if (rest === 0) window.clearInterval(timer)
    }
    const timer = window.setInterval(update, TICK_MS)
    update()
    return () => window.clearInterval(timer)
  }, [start, seconds])
  return left
}
