// By name: it opens half of the dashboard's pages.
/** Half of the dashboard's pages while their data are on their way: see test/support/page-loading.ts. */
import { loadingTest } from '../support/page-loading.ts'

loadingTest({ index: 0, of: 2 })
