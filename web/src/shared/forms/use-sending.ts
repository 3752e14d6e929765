import { type UseMutationOptions, useMutation } from '@tanstack/react-query'
import { useRef } from 'react'

/**
 * A mutation that runs once at a time: `mutate` does nothing while an earlier call is under way. `isPending`, which disables
 * buttons, is true some time after that, too late for the second click of a double one.
 */
export function useSending<Result, Values = void>(options: UseMutationOptions<Result, Error, Values>) {
  const isUnderWay = useRef(false)
  const { mutate, ...sending } = useMutation({
    ...options,
    onSettled(...outcome) {
      isUnderWay.current = false
      return options.onSettled?.(...outcome)
    },
  })
  return {
    ...sending,
    mutate(values: Values) {
      if (isUnderWay.current) return
      isUnderWay.current = true
      mutate(values)
    },
  }
}
