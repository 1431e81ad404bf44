// Off-the-shelf JSON:API clients at work on the service.
//
// Prints one JSON line for each check: {"name", "ok", "detail"}; the caller
// turns them into test results.  ENTITYAPI_URL is the address of the API's
// version, ENTITYAPI_TOKEN an access token.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import Kitsu from 'kitsu'

// its only build is CommonJS
const Devour = createRequire(import.meta.url)('devour-client')

const baseURL = process.env.ENTITYAPI_URL
const token = process.env.ENTITYAPI_TOKEN

async function check(name, action) {
  try {
    await action()
    console.log(JSON.stringify({ name, ok: true }))
  } catch (error) {
    const detail = error.errors ?? error.response?.data ?? error.stack
    console.log(JSON.stringify({ name, ok: false, detail }))
  }
}

const ids = (resources) => resources.map(({ id }) => id).sort()

async function useKitsu() {
  const api = new Kitsu({
    baseURL,
    camelCaseTypes: false,
    resourceCase: 'none',
    headers: { Authorization: `Bearer ${token}` }
  })
  let ann, work, genres

  await check('kitsu: create', async () => {
    ann = (await api.post('author', { name: 'Kitsu Ann', rank: 1 })).data
    assert.equal(ann.type, 'authors')
    assert.equal(ann.name, 'Kitsu Ann')
    genres = []
    for (const name of ['Kitsu drama', 'Kitsu farce']) {
      genres.push((await api.post('genre', { name })).data)
    }
  })
  await check('kitsu: create with relationships', async () => {
    const answer = await api.post('work', {
      title: 'Kitsu & more',
      price: 4999.5,
      author: { data: { id: ann.id, type: 'authors' } },
      genres: { data: genres.map(({ id }) => ({ id, type: 'genres' })) }
    })
    work = answer.data
    assert.equal(answer.status, 201)
    assert.equal(answer.headers.etag, '"0"')
    assert.equal(work.price, 4999.5)
    assert.equal(work.author.data.id, ann.id)
  })
  await check('kitsu: list with filter, sort, page, include and fields', async () => {
    const { data, meta } = await api.get('works', {
      params: {
        filter: `author.name=='Kitsu Ann';title=='Kitsu & more'`,
        include: 'author,genres',
        fields: { authors: 'name', works: 'title,author,genres' },
        sort: '-title',
        page: { number: 1, size: 5 }
      }
    })
    assert.equal(meta.pagination.totalRecords, 1)
    assert.equal(data[0].title, 'Kitsu & more')
    assert.equal(data[0].author.data.name, 'Kitsu Ann')
    assert.deepEqual(ids(data[0].genres.data), ids(genres))
    assert.equal(data[0].price, undefined)
  })
  await check('kitsu: get', async () => {
    const { data, headers } = await api.get(`works/${work.id}`, { params: { include: 'author' } })
    assert.equal(data.author.data.rank, 1)
    assert.equal(headers.etag, '"0"')
  })
  await check('kitsu: update', async () => {
    const { data } = await api.patch('author', { id: ann.id, rank: 2 })
    assert.equal(data.rank, 2)
    assert.equal(data.name, 'Kitsu Ann')
  })
  await check('kitsu: update of what is locked', async () => {
    await assert.rejects(api.patch('work', { id: work.id, price: 1 }), (error) => error.errors[0].status === '428')
    const headers = { 'If-Match': '"0"' }
    const { data } = await api.patch('work', { id: work.id, price: 1 }, { headers })
    assert.equal(data.price, 1)
    assert.equal(data.meta.version, 1)
    await assert.rejects(api.patch('work', { id: work.id, price: 2 }, { headers }), (error) => error.errors[0].status === '412')
    const second = await api.patch('work', { id: work.id, price: 2, meta: data.meta })
    assert.equal(second.data.meta.version, 2)
    await assert.rejects(api.patch('work', { id: work.id, price: 3, meta: data.meta }), (error) => error.errors[0].status === '412')
  })
  await check('kitsu: relationships', async () => {
    const path = `works/${work.id}/relationships/genres`
    const headers = { 'If-Match': '*' }
    const linked = async () => ids((await api.get(path)).data)

    assert.deepEqual(await linked(), ids(genres))
    await api.delete(path, [genres[0].id], { headers })
    assert.deepEqual(await linked(), [genres[1].id])
    await api.post(path, [{ id: genres[0].id }])
    assert.deepEqual(await linked(), ids(genres))
    await api.patch(path, [{ id: genres[0].id }], { headers })
    assert.deepEqual(await linked(), [genres[0].id])
    await api.request({
      method: 'PATCH', url: `works/${work.id}/relationships/editor`, type: 'authors', body: { id: ann.id }, headers
    })
    assert.equal((await api.get(`works/${work.id}/editor`)).data.name, 'Kitsu Ann')
    assert.deepEqual(ids((await api.get(`authors/${ann.id}/edits`)).data), [work.id])
  })
  await check('kitsu: a name of two words', async () => {
    const { data } = await api.post('readingroom', { name: 'North', guests: { data: [{ id: ann.id, type: 'authors' }] } })
    assert.equal(data.type, 'readingrooms')
    const list = await api.get('readingRooms', { params: { include: 'guests' } })
    assert.equal(list.data[0].guests.data[0].name, 'Kitsu Ann')
    await api.delete('readingroom', data.id)
  })
  await check('kitsu: errors', async () => {
    await assert.rejects(api.post('author', { name: 7, nothing: 1 }), ({ errors }) =>
      errors.length === 2 && errors.every(({ source }) => source.pointer.startsWith('/data/attributes/')))
    await assert.rejects(api.get('authors/x'), ({ errors }) => errors[0].status === '404')
    await assert.rejects(api.get('authors', { params: { sort: 'nothing' } }), ({ errors }) => errors[0].source.parameter === 'sort')
  })
  await check('kitsu: delete', async () => {
    await assert.rejects(api.delete('author', ann.id), ({ errors }) => errors[0].status === '409')
    await api.delete('work', work.id, { headers: { 'If-Match': '*' } })
    const { status } = await api.delete('author', ann.id)
    assert.equal(status, 204)
    await assert.rejects(api.get(`authors/${ann.id}`), ({ errors }) => errors[0].status === '404')
  })
}

async function useDevour() {
  const api = new Devour({ apiUrl: baseURL, bearer: token, logger: false })
  let ann, bob, work, genre, place

  // its errors are keyed by title
  const refused = (pattern) => (error) => pattern.test(JSON.stringify(error) + Object.keys(error).join())

  api.define('author', { name: '', rank: 0, mentor: { jsonApi: 'hasOne', type: 'authors' }, pupils: { jsonApi: 'hasMany', type: 'author' } })
  api.define('genre', { name: '', works: { jsonApi: 'hasMany', type: 'works' } })
  api.define('place', { name: '' })
  api.define('work', {
    title: '', price: 0,
    author: { jsonApi: 'hasOne', type: 'authors' },
    subject: { jsonApi: 'hasOne' },
    genres: { jsonApi: 'hasMany', type: 'genres' }
  })

  await check('devour: create', async () => {
    ann = (await api.create('author', { name: 'Devour Ann', rank: 1 })).data
    bob = (await api.create('author', { name: 'Devour Bob', mentor: { id: ann.id } })).data
    genre = (await api.create('genre', { name: 'Devour drama' })).data
    place = (await api.create('place', { name: 'Devour Alp' })).data
    work = (await api.create('work', {
      title: 'Devour', price: 0.1, author: { id: ann.id }, subject: { id: place.id, type: 'places' }, genres: [{ id: genre.id }]
    })).data
    assert.equal(work.price, 0.1)
    assert.equal(work.title, 'Devour')
  })
  await check('devour: list with filter, page and include', async () => {
    const { data, meta } = await api.findAll('work', {
      filter: `title==Devour;author.rank=ge=1`, include: 'author,genres,subject', page: { number: 1, size: 10 }
    })
    assert.equal(meta.pagination.totalRecords, 1)
    assert.equal(data[0].author.name, 'Devour Ann')
    assert.equal(data[0].genres[0].name, 'Devour drama')
    assert.equal(data[0].subject.name, 'Devour Alp')
  })
  await check('devour: find', async () => {
    const { data } = await api.find('author', bob.id, { include: 'mentor' })
    assert.equal(data.mentor.name, 'Devour Ann')
  })
  await check('devour: update', async () => {
    const { data } = await api.update('author', { id: bob.id, rank: 5, mentor: null })
    assert.equal(data.rank, 5)
    assert.equal((await api.find('author', bob.id)).data.name, 'Devour Bob')
  })
  await check('devour: relationships', async () => {
    const linked = async () => ids((await api.one('author', ann.id).all('pupil').get()).data)

    api.define('pupil', { name: '' }, { type: 'authors' })
    assert.deepEqual(await linked(), [])
    await api.one('author', ann.id).relationships('pupils').post([{ id: bob.id, type: 'authors' }])
    assert.deepEqual(await linked(), [bob.id])
    await api.one('author', ann.id).relationships('pupils').patch([])
    assert.deepEqual(await linked(), [])
    await api.one('author', ann.id).relationships('pupils').patch([{ id: bob.id, type: 'authors' }])
    await api.one('author', ann.id).relationships('pupils').destroy([{ id: bob.id, type: 'authors' }])
    assert.deepEqual(await linked(), [])
  })
  await check('devour: errors', async () => {
    await assert.rejects(api.find('author', 'x'), refused(/Not found/))
    await assert.rejects(api.update('work', { id: work.id, price: 1 }), refused(/Precondition required/))
  })
  await check('devour: delete', async () => {
    api.headers['If-Match'] = '*'
    await api.destroy('work', work.id)
    await api.destroy('author', ann.id)
    await api.destroy('author', bob.id)
    await assert.rejects(api.find('author', ann.id), refused(/Not found/))
  })
}

await useKitsu()
await useDevour()
console.log(JSON.stringify({ done: true }))
