/** Compares a figure with the limit of an alert (rules 7 and 8). Pure. */
import type { Comparator } from './alert.ts'

const DECIMALS = 1e6
const DECIMALS_OF_EQUAL = 1e4

const rounded = (value: number, decimals: number) => Math.round(value * decimals) / decimals

/** Decimal text with up to six decimals. */
export const decimalText = (value: number): string => String(rounded(value, DECIMALS))

/** Whether `value comparator limit` holds; `limit` is decimal text. */
export function holds(value: number, comparator: Comparator, limit: string): boolean {
  const [left, right] = [rounded(value, DECIMALS), rounded(Number(limit), DECIMALS)]
  switch (comparator) {
    case '=':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    case '>=':
      return left >= right
  }
}

const isEqual = (left: number, right: number) =>
  rounded(left, DECIMALS_OF_EQUAL) === rounded(right, DECIMALS_OF_EQUAL)
