-- The schema of the Chinook store (github.com/lerocha/chinook-database, MIT),
-- as its script for PostgreSQL names things; without rows.

create table artist (artist_id int not null primary key, name varchar(120));
create table album (album_id int not null primary key, title varchar(160) not null, artist_id int not null references artist);
create table employee (employee_id int not null primary key, last_name varchar(20) not null, first_name varchar(20) not null,
    title varchar(30), reports_to int references employee, birth_date timestamp, hire_date timestamp, address varchar(70),
    city varchar(40), state varchar(40), country varchar(40), postal_code varchar(10), phone varchar(24), fax varchar(24),
    email varchar(60));
create table customer (customer_id int not null primary key, first_name varchar(40) not null, last_name varchar(20) not null,
    company varchar(80), address varchar(70), city varchar(40), state varchar(40), country varchar(40), postal_code varchar(10),
    phone varchar(24), fax varchar(24), email varchar(60) not null, support_rep_id int references employee);
create table genre (genre_id int not null primary key, name varchar(120));
create table invoice (invoice_id int not null primary key, customer_id int not null references customer,
    invoice_date timestamp not null, billing_address varchar(70), billing_city varchar(40), billing_state varchar(40),
    billing_country varchar(40), billing_postal_code varchar(10), total numeric(10,2) not null);
create table media_type (media_type_id int not null primary key, name varchar(120));
create table track (track_id int not null primary key, name varchar(200) not null, album_id int references album,
    media_type_id int not null references media_type, genre_id int references genre, composer varchar(220),
    milliseconds int not null, bytes int, unit_price numeric(10,2) not null);
create table invoice_line (invoice_line_id int not null primary key, invoice_id int not null references invoice,
    track_id int not null references track, unit_price numeric(10,2) not null, quantity int not null);
create table playlist (playlist_id int not null primary key, name varchar(120));
create table playlist_track (playlist_id int not null references playlist, track_id int not null references track,
    primary key (playlist_id, track_id));
