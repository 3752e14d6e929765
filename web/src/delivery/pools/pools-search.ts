const WINDOWS = ['edit', 'ip', 'domain', 'delegate', 'delete'] as const
export type PoolWindow = (typeof WINDOWS)[number]

/** Search parameters of the page of a pool. */
export interface PoolSearch {
  /** The window that is open. */
  open?: PoolWindow
}

export function readPoolSearch({ open }: Record<string, unknown>): PoolSearch {
  const window = WINDOWS.find((each) => each === open)
  return window === undefined ? {} : { open: window }
}
