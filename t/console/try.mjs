import puppeteer from 'puppeteer-core'
const [,, user, password, ...steps] = process.argv
const base = process.env.BASE ?? 'http://127.0.0.1:8452'
if (!process.env.NOWAIT) globalThis.waitForm = true
const browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--lang=en-US'], headless: true })
const page = await browser.newPage()
await page.setViewport({ width: +(process.env.W ?? 1280), height: +(process.env.H ?? 800) })
if (process.env.DARK) await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
page.on('console', (m) => { if (['error', 'warn'].includes(m.type())) console.log('CONSOLE', m.type(), m.text(), m.location()?.url ?? '') })
page.on('pageerror', (e) => console.log('PAGEERROR', e.stack))
page.on('requestfailed', (r) => console.log('FAILED', r.url(), r.failure()?.errorText))
await page.goto(base + '/', { waitUntil: 'networkidle0' })
if (user !== '-') {
  await page.waitForSelector('input[name=username]', { timeout: 4000 }).catch(async () => console.log('NOFORM', await page.evaluate(() => document.body.innerText)))
  await page.type('input[name=username]', user)
  await page.type('input[name=password]', password)
  await page.click('button[type=submit]')
  await page.waitForSelector('.frame h1', { timeout: 5000 }).catch((e) => console.log('NOLOGIN', e.message))
}
let n = 0
for (const step of steps) {
  if (step.startsWith('#')) await page.evaluate((to) => { location.hash = to }, step)
  else if (step.startsWith('shot:')) { await page.screenshot({ path: step.slice(5), fullPage: Boolean(process.env.FULL) }); continue }
  else if (step.startsWith('text:')) { const [, sel] = step.split(/:(.*)/); console.log(await page.$eval(sel, (e) => e.innerText).catch((e) => 'NO ' + sel)); continue }
  else if (step.startsWith('type:')) { const [, sel, text] = /^type:(.*?)=>(.*)$/.exec(step); await page.type(sel, text) }
  else if (step.startsWith('js:')) console.log(JSON.stringify(await page.evaluate(step.slice(3))))
  else if (step.startsWith('key:')) await page.keyboard.press(step.slice(4))
  else await page.locator(step).setTimeout(3000).click().catch((e) => console.log('NOCLICK', step, e.message))
  await new Promise((r) => setTimeout(r, 150))
  await page.waitForNetworkIdle({ idleTime: 150, timeout: 4000 }).catch(() => {})
}
await browser.close()
