import { shortDateTime } from '../base/format.ts'

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

/** A sentence of the service with its UTC times in the reader's zone. */
export const withLocalTimes = (sentence: string): string =>
  sentence.replace(INSTANT, (instant) => shortDateTime(Date.parse(instant)))
