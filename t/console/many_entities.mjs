// The console over hundreds of entities: how long its pages take, and what they
// keep. A line of JSON for each page, with seconds and megabytes.

import { Tab, launch } from './browser.mjs'

const { user, pages } = JSON.parse(process.env.CONSOLE_SETUP)
const browser = await launch()
const tab = await Tab.open(browser)
const client = await tab.page.createCDPSession()

await client.send('Performance.enable')

/** What scripts keep once nothing that has gone is counted. */
async function kept() {
  await client.send('HeapProfiler.collectGarbage')
  const { metrics } = await client.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === 'JSHeapUsedSize').value / 1e6
}

async function measure(name, action) {
  const began = performance.now()
  await action()
  const seconds = (performance.now() - began) / 1000
  console.log(JSON.stringify({ name, seconds, megabytes: await kept() }))
}

await measure('login page', () => tab.load())
await measure('login', async () => { await tab.login(user); await tab.shown() })
for (const page of pages) await measure(page || 'home', () => tab.go(page))
await measure('loaded anew', async () => { await tab.page.reload(); await tab.see('.frame h1'); await tab.shown() })
await measure('a document opened again', () => tab.go(pages[1]))
await tab.close()
await browser.close()
console.log(JSON.stringify({ done: true }))
