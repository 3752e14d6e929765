import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useSending } from './use-sending.ts'

interface FormOptions<Values, Result> {
  initial: Values
  send: (values: Values) => Promise<Result>
  /** Prefix of the queries that the change concerns: they are asked again before the form is done. */
  changes?: string
  /** `onDone` comes before that: it leaves the page, which asks for what is no longer there, or shows a secret that is shown once. */
  doneFirst?: true
  /** It was accepted. */
  onDone: (result: Result, values: Values) => unknown
}

/**
 * The values of a form and its sending. `field(name)` binds an input of text; `window` are the properties of a
 * `FormWindow`. The server's refusal goes away when something is changed.
 */
export function useForm<Values extends object, Result>(options: FormOptions<Values, Result>) {
  const { initial, send, changes, doneFirst, onDone } = options
  const [values, setValues] = useState(initial)
  const queries = useQueryClient()
  const sending = useSending({
    mutationFn: () => send(values),
    async onSuccess(result) {
      const refresh = () => changes !== undefined && queries.invalidateQueries({ queryKey: [changes] })
      // A window that closed before the page has the change would open again with the old values.
      if (doneFirst !== true) await refresh()
      await onDone(result, values)
      if (doneFirst === true) void refresh()
    },
  })
  const set = (part: Partial<Values>) => {
    sending.reset()
    setValues((old) => ({ ...old, ...part }))
  }
  return {
    values,
    set,
    field: <Name extends keyof Values>(name: Name) => ({
      value: values[name],
      onChange: (event: { currentTarget: { value: string } }) =>
        set({ [name]: event.currentTarget.value } as unknown as Partial<Values>),
    }),
    window: { busy: sending.isPending, error: sending.error, onSubmit: () => sending.mutate() },
  }
}

/** Properties of an input for an address, a name or a word: no help of the browser changes what is typed. */
export const EXACT = { autoComplete: 'off', autoCapitalize: 'none', spellCheck: false } as const
